package notify_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

const arn = "arn:aws:sns:eu-central-1:123456789012:alerts"

// published returns what was published to a server that stands for SNS.
func published(t *testing.T, h *hook) (out []url.Values) {
	t.Helper()
	for _, body := range h.bodies {
		v, err := url.ParseQuery(body)
		require.NoError(t, err)
		out = append(out, v)
	}
	return out
}

func newSNS(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *hook {
	t.Helper()
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request, _ string) {
			_, _ = fmt.Fprint(w, `<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>`)
		}
	}
	h := newHook(t, answer)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SNS": h.URL, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_REGION": "us-east-1",
	} {
		t.Setenv(name, value)
	}
	return h
}

// TestTopic: each event is a message with the document of a webhook, and texts for people.
func TestTopic(t *testing.T) {
	h := newSNS(t, nil)
	sender := senderOf(t, func(s *notify.Settings) { s.Topic = arn })
	d, err := sender.Send(t.Context(), "team-a", []rulestate.Notification{notice("High", false), notice("High", true)})
	require.NoError(t, err)
	require.Equal(t, notify.Delivery{Sent: 2}, d)
	require.Contains(t, h.headers[0].Get("Authorization"), "/eu-central-1/sns/aws4_request", "the region of the topic")
	all := published(t, h)
	require.Len(t, all, 2)
	for i, subject := range []string{"[FIRING] High (severity=page, tenant=team-a)", "[RESOLVED] High (severity=page, tenant=team-a)"} {
		m := all[i]
		require.Equal(t, []string{"Publish", arn, "json", subject, ""}, []string{m.Get("Action"), m.Get("TopicArn"), m.Get("MessageStructure"), m.Get("Subject"), m.Get("MessageGroupId")})
		var parts map[string]string
		require.NoError(t, json.Unmarshal([]byte(m.Get("Message")), &parts))
		require.Equal(t, subject, parts["sms"])
		var doc struct{ Status, Version string }
		require.NoError(t, json.Unmarshal([]byte(parts["default"]), &doc))
		require.Equal(t, "4", doc.Version)
		want := "High is " + doc.Status + ".\n\nsummary: 5 > 3 of \"é\"\n\nLabels:\n  alertname = High\n  severity = page\n  tenant = team-a\n\nFiring since: 2026-01-02T03:04:05Z\n"
		if i == 1 {
			want += "Resolved: 2026-01-02T03:05:05Z\n"
		}
		require.Equal(t, want+"Expression: https://prom.example.com/#/explore?g0.expr=up&tenant=team-a\n", parts["email"])
	}
}

// TestTopicKeepsOrder: the events of an alert are in one message group of a FIFO topic.
func TestTopicKeepsOrder(t *testing.T) {
	h := newSNS(t, nil)
	sender := senderOf(t, func(s *notify.Settings) { s.Topic = arn + ".fifo" })
	_, err := sender.Send(t.Context(), "t", []rulestate.Notification{notice("High", false), notice("High", true)})
	require.NoError(t, err)
	all := published(t, h)
	require.Equal(t, all[0].Get("MessageGroupId"), all[1].Get("MessageGroupId"))
	require.NotEqual(t, all[0].Get("MessageDeduplicationId"), all[1].Get("MessageDeduplicationId"))
}

// TestTopicIsBounded: a subject is what SNS takes, a message that is too long has shorter
// annotations, and one whose labels are too long is refused.
func TestTopicIsBounded(t *testing.T) {
	h := newSNS(t, nil)
	sender := senderOf(t, func(s *notify.Settings) { s.Topic = arn })
	with := func(ls, as labels.Labels) rulestate.Notification {
		n := notice("x", false)
		n.Labels, n.Annotations = ls, as
		return n
	}
	long := strings.Repeat("é", 200<<10)
	many := labels.NewBuilder(labels.EmptyLabels())
	for i := range 300 {
		many.Set(fmt.Sprint("a", i), strings.Repeat("b", 2000))
	}
	for _, tc := range []struct {
		n       rulestate.Notification
		subject string
		doc     string // what the document has
	}{
		{with(labels.FromStrings("alertname", "É\n", "l", strings.Repeat("x", 100)), labels.EmptyLabels()), "[FIRING] ?? (l=" + strings.Repeat("x", 82) + "...", `"annotations":{}`},
		{with(labels.FromStrings("alertname", "A"), labels.FromStrings("short", "s", "long", long)), "[FIRING] A", `"short":"s"`},
		{with(labels.FromStrings("alertname", "B"), many.Labels()), "[FIRING] B", `"annotations":{}`},
	} {
		h.bodies = nil
		_, err := sender.Send(t.Context(), "anonymous", []rulestate.Notification{tc.n})
		require.NoError(t, err)
		(func(m url.Values) {
			require.Equal(t, tc.subject, m.Get("Subject"))
			require.LessOrEqual(t, len(m.Get("Subject")), 100)
			require.LessOrEqual(t, len(m.Get("Message")), 256<<10)
			var parts map[string]string
			require.NoError(t, json.Unmarshal([]byte(m.Get("Message")), &parts))
			require.Contains(t, parts["default"], tc.doc)
		})(published(t, h)[0])
	}
	d, err := sender.Send(t.Context(), "anonymous", []rulestate.Notification{with(labels.FromStrings("alertname", long), labels.EmptyLabels())})
	require.NoError(t, err)
	require.Empty(t, d.Left)
	require.ErrorContains(t, d.Refused, "take more than 262144 bytes")
	require.Less(t, len(d.Refused.Error()), 1000)
}

// TestTopicFails: a message that SNS finds invalid is refused; other errors leave it.
func TestTopicFails(t *testing.T) {
	code, status := "InvalidParameter", http.StatusBadRequest
	newSNS(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>%s</Code><Message>no</Message></Error><RequestId>1</RequestId></ErrorResponse>`, code)
	})
	sender := senderOf(t, func(s *notify.Settings) { s.Topic = arn })
	all := []rulestate.Notification{notice("High", false)}
	d, err := sender.Send(t.Context(), "t", all)
	require.NoError(t, err)
	require.Empty(t, d.Left)
	require.ErrorContains(t, d.Refused, "InvalidParameter: no")
	code, status = "AuthorizationError", http.StatusForbidden
	d, err = sender.Send(t.Context(), "t", all)
	require.ErrorContains(t, err, "notify topic "+arn+": ")
	require.ErrorContains(t, err, "AuthorizationError")
	require.Equal(t, all, d.Left)
	require.NoError(t, d.Refused)
}
