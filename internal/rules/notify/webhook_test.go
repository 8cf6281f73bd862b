package notify_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

var page = &url.URL{Scheme: "https", Host: "prom.example.com"}

// began is a time of the past, so that an alert that ended then has ended.
var began = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// notice returns the notification of an alert, which has ended or fires for ever.
func notice(name string, ended bool) rulestate.Notification {
	n := rulestate.Notification{
		Labels: labels.FromStrings("alertname", name, "severity", "page"), Annotations: labels.FromStrings("summary", "5 > 3 of \"é\""),
		StartsAt: began, EndsAt: time.Now().Add(time.Hour), GeneratorURL: "https://prom.example.com/#/explore?g0.expr=up",
	}
	if ended {
		n.EndsAt = began.Add(time.Minute)
	}
	return n
}

// hook is a server that notes what is posted to it.
type hook struct {
	*httptest.Server

	mu      sync.Mutex
	bodies  []string
	headers []http.Header
}

// newHook returns a server that answers each request as answer does.
func newHook(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.mu.Lock()
		h.bodies, h.headers = append(h.bodies, string(body)), append(h.headers, r.Header)
		h.mu.Unlock()
		if answer != nil {
			answer(w, r, string(body))
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func senderOf(t *testing.T, change func(*notify.Settings)) *notify.Sender {
	t.Helper()
	s := settings.Default[notify.Settings]()
	change(&s)
	require.NoError(t, s.Validate())
	sender, err := s.Sender(page)
	require.NoError(t, err)
	return sender
}

// TestWebhook: each event of an alert is a document of Alertmanager's webhooks, byte by byte.
func TestWebhook(t *testing.T) {
	h := newHook(t, nil)
	sender := senderOf(t, func(s *notify.Settings) {
		s.Webhook = strings.Replace(h.URL, "http://", "http://u:p@", 1) + "/hook?key=1"
		s.ExternalLabels = "cluster=prod"
		s.RelabelConfigs = "[{source_labels: [alertname], regex: Quiet, action: drop}]"
	})
	d, err := sender.Send(t.Context(), "team-a", []rulestate.Notification{notice("High", false), notice("Quiet", false), notice("High", true)})
	require.NoError(t, err)
	require.Equal(t, notify.Delivery{Sent: 2}, d)
	const ls = `{"alertname":"High","cluster":"prod","severity":"page","tenant":"team-a"}`
	want := func(status, ends string) string {
		return `{"receiver":"promlake","status":"` + status + `","alerts":[{"status":"` + status + `","labels":` + ls +
			`,"annotations":{"summary":"5 \u003e 3 of \"é\""},"startsAt":"2026-01-02T03:04:05.678Z","endsAt":"` + ends +
			`","generatorURL":"https://prom.example.com/#/explore?g0.expr=up\u0026tenant=team-a","fingerprint":"e480fdd5e9805d5c"}],"groupLabels":` + ls +
			`,"commonLabels":` + ls + `,"commonAnnotations":{"summary":"5 \u003e 3 of \"é\""},"externalURL":"https://prom.example.com","version":"4",` +
			`"groupKey":"{}:{alertname=\"High\", cluster=\"prod\", severity=\"page\", tenant=\"team-a\"}","truncatedAlerts":0}`
	}
	require.Equal(t, []string{want("firing", "0001-01-01T00:00:00Z"), want("resolved", "2026-01-02T03:05:05.678Z")}, h.bodies, "in this order")
	require.Equal(t, "application/json", h.headers[0].Get("Content-Type"))
	user, password, ok := (&http.Request{Header: h.headers[0]}).BasicAuth()
	require.Equal(t, []any{"u", "p", true}, []any{user, password, ok})
}

// TestWebhookFails: what is not accepted is left, also later events of the same alert. What the
// receiver refuses is not.
func TestWebhookFails(t *testing.T) {
	statuses := map[string]int{"Wrong": 400, "Long": 413, "Away": 503}
	var refused sync.WaitGroup // after the first failure, nothing more is sent
	refused.Add(2)
	h := newHook(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		for name, status := range statuses {
			if strings.Contains(body, `"alertname":"`+name+`"`) {
				if status == 503 {
					refused.Wait()
				} else {
					refused.Done()
				}
				http.Error(w, "not "+name, status)
			}
		}
	})
	sender := senderOf(t, func(s *notify.Settings) { s.Webhook = h.URL })
	gone := []rulestate.Notification{notice("Away", false), notice("Away", true)}
	d, err := sender.Send(t.Context(), "t", append([]rulestate.Notification{notice("Fine", false), notice("Wrong", false), notice("Long", true)}, gone...))
	require.ErrorContains(t, err, `503 Service Unavailable: "not Away\n"`)
	require.Equal(t, 5, d.Sent)
	require.Subset(t, d.Left, gone)
	require.NotContains(t, d.Left, notice("Wrong", false))
	require.ErrorContains(t, d.Refused, `400 Bad Request: "not Wrong\n"`)
	require.ErrorContains(t, d.Refused, `413 Request Entity Too Large: "not Long\n"`)
}

// TestWebhookIsSecret: no error has a part of the URL but its host, whether the receiver is away,
// repeats what it was asked, or sends the client on.
func TestWebhookIsSecret(t *testing.T) {
	const path = "/services/T0SECRET/hidden%2Fpart?token=alsohidden"
	h := newHook(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		if strings.HasPrefix(r.URL.Path, "/on") {
			http.Redirect(w, r, "http://127.0.0.1:1/hidden-again", http.StatusTemporaryRedirect)
			return
		}
		http.Error(w, fmt.Sprintf("%s has no %s (%s)", r.Host, r.URL.Path, r.RequestURI), http.StatusNotFound)
	})
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, u := range []string{h.URL + path, closed.URL + path, h.URL + "/on" + path} {
		sender := senderOf(t, func(s *notify.Settings) { s.Webhook = strings.Replace(u, "http://", "http://user:hiddenpassword@", 1) })
		_, err := sender.Send(t.Context(), "t", []rulestate.Notification{notice("High", false)})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hidden")
		require.NotContains(t, err.Error(), "T0SECRET")
	}
}

// TestWebhookFromFile: the URL is read from its source at each delivery, and is not in errors.
func TestWebhookFromFile(t *testing.T) {
	h := newHook(t, nil)
	file := filepath.Join(t.TempDir(), "url")
	sender := senderOf(t, func(s *notify.Settings) { s.Webhook = "file:" + file })
	all := []rulestate.Notification{notice("High", false)}
	d, err := sender.Send(t.Context(), "t", all)
	require.ErrorContains(t, err, "webhook of file:"+file+": read secret: ")
	require.Equal(t, all, d.Left)
	require.NoError(t, os.WriteFile(file, []byte("hidden"), 0o600))
	d, err = sender.Send(t.Context(), "t", all)
	require.ErrorContains(t, err, "want http://host/path")
	require.NotContains(t, err.Error(), "hidden")
	require.Equal(t, all, d.Left)
	require.NoError(t, os.WriteFile(file, []byte(h.URL+"/x\n"), 0o600))
	_, err = sender.Send(t.Context(), "t", all)
	require.NoError(t, err)
	var got struct{ Status string }
	require.NoError(t, json.Unmarshal([]byte(h.bodies[0]), &got))
	require.Equal(t, "firing", got.Status)
}
