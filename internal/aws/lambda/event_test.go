package lambda

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	return b
}

// asked is the request as a handler receives it.
type asked struct {
	method, uri, path, host, remote, tenant, kind, body string
	query                                               map[string][]string
	length                                              int64
	cookies                                             []string
}

func see(t *testing.T, r *http.Request) asked {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	a := asked{
		method: r.Method, uri: r.RequestURI, path: r.URL.Path, host: r.Host, remote: r.RemoteAddr,
		tenant: r.Header.Get("X-Scope-OrgID"), kind: r.Header.Get("Content-Type"), body: string(b), query: r.URL.Query(), length: r.ContentLength,
	}
	for _, c := range r.Cookies() {
		a.cookies = append(a.cookies, c.Name)
	}
	require.Equal(t, r.ContentLength, int64(len(b)))
	return a
}

func TestRecordedRequests(t *testing.T) {
	const api, url = "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com", "abcdefghijklmnopqrstuvwxyz012345.lambda-url.eu-central-1.on.aws"
	for name, want := range map[string]struct {
		kind Event
		asked
	}{
		"http-api-query": {HTTPAPI, asked{
			method: "GET", uri: "/api/v1/query?query=sum(node_load1)&time=1764000015", path: "/api/v1/query", host: api, remote: "203.0.113.7:0",
			tenant: "team-a", query: map[string][]string{"query": {"sum(node_load1)"}, "time": {"1764000015"}},
		}},
		"http-api-query-range-form": {HTTPAPI, asked{
			method: "POST", uri: "/api/v1/query_range", path: "/api/v1/query_range", host: api, remote: "203.0.113.7:0", tenant: "team-a",
			kind: "application/x-www-form-urlencoded", body: "query=node_load5%7Bjob%3D%22node%22%7D&start=1764000000&end=1764000015&step=15", length: 78,
			query: map[string][]string{},
		}},
		"http-api-stage": {HTTPAPI, asked{
			method: "GET", uri: "/api/v1/series?match[]=up&match[]=node_load1&start=1764000000", path: "/api/v1/series", host: api, remote: "203.0.113.7:0",
			tenant: "team-a", query: map[string][]string{"match[]": {"up", "node_load1"}, "start": {"1764000000"}}, cookies: []string{"grafana_session", "theme"},
		}},
		"function-url-label-values": {FunctionURL, asked{
			method: "GET", uri: "/api/v1/label/U__http_2e_status%2Fcode/values?match%5B%5D=%7Bjob%3D%22node%22%7D&match%5B%5D=up",
			path: "/api/v1/label/U__http_2e_status/code/values", host: url, remote: "[2001:db8::7]:0", tenant: "team-a", kind: "application/x-www-form-urlencoded",
			query: map[string][]string{"match[]": {`{job="node"}`, "up"}}, cookies: []string{"a"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := parse(recorded(t, name))
			require.NoError(t, err)
			require.Equal(t, want.kind, e.kind)
			r, release := e.request.request(t.Context(), e.kind)
			require.Equal(t, want.asked, see(t, r))
			release()
			_, err = r.Body.Read(make([]byte, 1))
			require.ErrorIs(t, err, http.ErrBodyReadAfterClose, "the payload belongs to the next event")
		})
	}
}

// TestNoDomainName: an event without a domain name is one of the HTTP API, not of a Remote.
func TestNoDomainName(t *testing.T) {
	e, err := parse([]byte(`{"version":"2.0","rawPath":"/","requestContext":{"http":{"method":"GET"}}}`))
	require.NoError(t, err)
	require.Equal(t, HTTPAPI, e.kind)
}

// TestPrincipal: the identity is that of the event's authorizer, and no header or body replaces it.
func TestPrincipal(t *testing.T) {
	const sent = `{"version":"2.0","rawPath":"/","headers":{"userArn":"arn:aws:iam::1:root","authorizer":"{\"iam\":{}}"},"userArn":"arn:aws:iam::1:root",` +
		`"authorizer":{"iam":{"userArn":"arn:aws:iam::1:root"}},"body":"{\"userArn\":\"arn:aws:iam::1:root\"}","requestContext":{"userArn":"arn:aws:iam::1:root","http":{"method":"GET","userAgent":"arn:aws:iam::1:root"}%s}}`
	for name, tc := range map[string]struct{ payload, want string }{
		"HTTP API":      {string(recorded(t, "http-api-query-iam")), "arn:aws:sts::123456789012:assumed-role/grafana/1764000015123"},
		"Function URL":  {string(recorded(t, "function-url-query-iam")), "arn:aws:iam::210987654321:user/analysts/reader"},
		"open":          {string(recorded(t, "http-api-query")), ""},
		"no authorizer": {fmt.Sprintf(sent, ""), ""},
		"null":          {fmt.Sprintf(sent, `,"authorizer":null`), ""},
		"no identity":   {fmt.Sprintf(sent, `,"authorizer":{"iam":null}`), ""},
		"JWT":           {fmt.Sprintf(sent, `,"authorizer":{"jwt":{"claims":{"userArn":"arn:aws:iam::1:root"}}}`), ""},
		"identity":      {fmt.Sprintf(sent, `,"authorizer":{"iam":{"userArn":"arn:aws:iam::123456789012:root"}}`), "arn:aws:iam::123456789012:root"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				i, ok := Current(r.Context())
				require.True(t, ok)
				got = append(got, i.Principal)
			})
			f := newFunction(Handlers{HTTP: h})
			_, err := f.Invoke(t.Context(), []byte(tc.payload))
			require.NoError(t, err)
			require.Equal(t, []string{tc.want}, got)
		})
	}
}

func TestStageIsNotPartOfThePath(t *testing.T) {
	for _, tc := range []struct{ stage, path, want string }{
		{"$default", "/prod/x", "/prod/x"},
		{"prod", "/prod/x", "/x"},
		{"prod", "/prod", "/"},
		{"prod", "/production/x", "/production/x"},
		{"prod", "/x", "/x"}, // a custom domain's API mapping
		{"prod", "/prod/a%2Fb c", "/a%2Fb c"},
		{"", "", "/"},
	} {
		e := httpEvent{Path: tc.path, Context: requestContext{Stage: tc.stage}}
		require.Equal(t, tc.want, e.url(HTTPAPI).Path, tc)
	}
}

func TestRecordedMessages(t *testing.T) {
	const queues, handle = "arn:aws:sqs:eu-central-1:123456789012:", "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a"
	for name, want := range map[string][]Message{
		"sqs-standard": {
			{ID: "059f36b4-87a3-44ab-83d2-661975830a7d", Handle: handle, Queue: queues + "promlake-prod-write", Body: "first message", Sent: time.UnixMilli(1764000010001), Receives: 1},
			{ID: "2e1424d4-f796-459a-8184-9c92662be6da", Handle: handle, Queue: queues + "promlake-prod-write", Body: "{\"second\": \"message \\u00e4\"}\n", Sent: time.UnixMilli(1764000010002), Receives: 2},
		},
		"sqs-fifo": {
			{ID: "11d6ee51-4cc7-4302-9e22-7cd8afdaadf5", Handle: handle, Queue: queues + "promlake-prod-jobs.fifo", Body: "a job", Group: "team-a/2025-11-24", Sent: time.UnixMilli(1764000010001), Receives: 1},
		},
	} {
		e, err := parse(recorded(t, name))
		require.NoError(t, err)
		require.Equal(t, SQS, e.kind)
		require.Equal(t, want, e.messages)
	}
}

func TestRecordedSchedules(t *testing.T) {
	for _, name := range []string{"eventbridge-rule", "eventbridge-scheduler"} {
		e, err := parse(recorded(t, name))
		require.NoError(t, err)
		require.Equal(t, Schedule, e.kind)
		require.Equal(t, time.Date(2025, 11, 24, 16, 1, 0, 0, time.UTC), e.at.UTC())
	}
}

func TestOtherEventsAreRefusedByName(t *testing.T) {
	h := Handlers{HTTP: http.NotFoundHandler()}
	for _, tc := range []struct{ payload, want string }{
		{string(recorded(t, "unknown-rest-api")), "payload format 1.0"},
		{string(recorded(t, "unknown-s3")), `records of "aws:s3"`},
		{string(recorded(t, "unknown-ec2")), `"EC2 Instance State-change Notification" of "aws.ec2"`},
		{string(recorded(t, "sqs-fifo")), "sqs; this function supports HTTP requests"},
		{string(recorded(t, "eventbridge-rule")), "schedule; this function supports HTTP requests"},
		{`{"command":"redrive"}`, "command; this function supports HTTP requests"},
		{`{"Records":[]}`, "records of nothing"},
		{`{"key1":"value1","key2":{}}`, `members ["key1" "key2"]; this function supports HTTP requests`},
		{`{}`, "members []"},
	} {
		e, err := parse([]byte(tc.payload))
		err = h.refuse(e, err)
		require.ErrorIs(t, err, ErrEvent, tc.payload)
		require.ErrorContains(t, err, tc.want)
	}
	require.Equal(t, "no events", Handlers{}.takes())
}

func TestBrokenEvents(t *testing.T) {
	for _, payload := range []string{
		"", "null", "[]", `{`, `{"version"`, `{"version":`, `{"version":2}`, `{"version":"2.0"`, `{"version":"2.0",}`, `{"a":"b"} x`, `{"a":]}`, `{"a":"b`, `{"a":"b\`,
		`{"headers":{"a":1}}`, `{"requestContext":[]}`, `{"isBase64Encoded":"x"}`, `{"cookies":"a"}`, `{"Records":{}}`, `{"Records":[1]}`,
		`{"Records":[{"eventSource":"aws:sqs","attributes":{"SentTimestamp":"x"}}]}`, `{"Records":[{"eventSource":"aws:sqs","attributes":{"ApproximateReceiveCount":1}}]}`,
		`{"source":"aws.events","detail-type":"Scheduled Event","time":"now"}`,
	} {
		_, err := parse([]byte(payload))
		require.ErrorContains(t, err, "read event: ", payload)
		require.NotErrorIs(t, err, ErrEvent, payload)
	}
}
