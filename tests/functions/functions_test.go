package functions

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// The samples of the recorded requests of both protocols: three series, two samples each.
var (
	load1 = map[string]string{"host-0:9100": "[1764000015 0.75]", "host-1:9100": "[1764000015 1.75]", "host-2:9100": "[1764000015 2.75]"}
	load5 = map[string]string{
		"host-0:9100": "[[1764000000 0.25] [1764000015 0.375]]", "host-1:9100": "[[1764000000 1.25] [1764000015 1.375]]",
		"host-2:9100": "[[1764000000 2.25] [1764000015 2.375]]",
	}
)

// requireAnswers queries the HTTP API with GET and with a form, and the Function URL.
func (s *stack) requireAnswers(t *testing.T) {
	t.Helper()
	require.Equal(t, map[string]string{"": "[1764000015 5.25]"}, series(t, plain(t, ask(t, s.query, recorded(t, "http-api-query")))))
	require.Equal(t, load5, series(t, plain(t, ask(t, s.query, recorded(t, "http-api-query-range-form")))))
	require.Equal(t, load1, series(t, plain(t, ask(t, s.query, recorded(t, "function-url-query")))))
}

// plain decompresses an answer; the recorded clients accept gzip, which short answers do not have.
func plain(t *testing.T, a answer) answer {
	t.Helper()
	if a.Headers["Content-Encoding"] == "" {
		require.Less(t, len(a.Body), 1<<10)
		return a
	}
	require.Equal(t, "gzip", a.Headers["Content-Encoding"])
	r, err := gzip.NewReader(strings.NewReader(a.Body))
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	a.Body = string(b)
	return a
}

func TestWriteCompactQuery(t *testing.T) {
	s := start(t, "PROMLAKE_INGEST_MODE=direct")
	for _, name := range []string{"http-api-write-v1", "http-api-write-v2"} {
		a := ask(t, s.ingest, recorded(t, name))
		require.Equal(t, 204, a.Status, a.Body)
	}
	s.requireAnswers(t)

	for _, schedule := range []string{"eventbridge-rule", "eventbridge-scheduler"} {
		b, err := s.compact.Invoke(t.Context(), recorded(t, schedule).payload(t))
		require.NoError(t, err)
		require.JSONEq(t, "null", string(b))
	}
	manifest, err := os.ReadFile(filepath.Join(s.store, "v1", "team-a", "manifest.json"))
	require.NoError(t, err, "the schedule made blocks")
	var m struct{ Blocks []any }
	require.NoError(t, json.Unmarshal(manifest, &m))
	require.NotEmpty(t, m.Blocks, string(manifest))
	s.requireAnswers(t)
}

func TestWriteThroughAQueue(t *testing.T) {
	sqs, q := sqstest.Start(t), memqueue.New(memqueue.Settings{})
	s := start(t,
		"PROMLAKE_INGEST_MODE=buffered", "PROMLAKE_INGEST_QUEUE_URL="+sqs.Add("write", q),
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
	)
	for _, name := range []string{"http-api-write-v1", "http-api-write-v2"} {
		a := ask(t, s.ingest, recorded(t, name))
		require.Equal(t, 204, a.Status, a.Body)
	}
	ms := q.Messages()
	require.Len(t, ms, 2)
	require.NoDirExists(t, filepath.Join(s.store, "v1"), "nothing is written before the queue delivers")

	batch := message(t, "sqs-standard", ms[0].Body)
	second, poison := message(t, "sqs-standard", ms[1].Body), message(t, "sqs-standard", "no message of ours")
	for id, e := range map[string]event{"second": second, "poison": poison} {
		r := e["Records"].([]any)[0].(map[string]any)
		r["messageId"] = id
		batch["Records"] = append(batch["Records"].([]any), r)
	}
	for range 2 { // queues deliver at least once
		b, err := s.ingest.Invoke(t.Context(), batch.payload(t))
		require.NoError(t, err)
		require.JSONEq(t, `{"batchItemFailures":[{"itemIdentifier":"poison"}]}`, string(b))
	}
	s.requireAnswers(t)
}

func TestRefusals(t *testing.T) {
	s := start(t, "PROMLAKE_INGEST_MODE=direct")
	for name, f := range map[string]*emulator.Function{"sqs-standard": s.query, "eventbridge-rule": s.ingest, "unknown-rest-api": s.query, "unknown-s3": s.compact} {
		_, err := f.Invoke(t.Context(), recorded(t, name).payload(t))
		var fe *emulator.FunctionError
		require.ErrorAs(t, err, &fe, name)
		require.Contains(t, fe.Message, "this function supports ", name)
	}
	bad := recorded(t, "http-api-write-v1")
	bad["body"] = "AAAA"
	require.Equal(t, 400, ask(t, s.ingest, bad).Status)
	bad["isBase64Encoded"], bad["body"] = true, "*"
	require.Equal(t, 400, ask(t, s.ingest, bad).Status)
	a := ask(t, s.query, asking(t, "http-api-query", "/api/v1/query", "query=)"))
	require.Equal(t, 400, a.Status)
	require.Contains(t, plain(t, a).Body, `"errorType":"bad_data"`)
	require.Equal(t, 404, ask(t, s.query, asking(t, "function-url-query", "/api/v1/write", "")).Status)
	for _, f := range []*emulator.Function{s.ingest, s.query, s.compact} {
		require.Len(t, f.Processes(), 1, "no refusal ends a process")
	}
}

// TestFunctionsServeMetrics reads the metrics of each function, and ends it as Lambda does.
func TestFunctionsServeMetrics(t *testing.T) {
	s := start(t, "PROMLAKE_INGEST_MODE=direct", "PROMLAKE_COMPACTOR_ENABLED=false")
	for _, f := range []*emulator.Function{s.ingest, s.query, s.compact} {
		for range 2 {
			require.Equal(t, 200, ask(t, f, asking(t, "http-api-query", "/-/ready", "")).Status)
		}
		text := plain(t, ask(t, f, asking(t, "http-api-query", "/metrics", ""))).Body
		for _, want := range []string{
			"promlake_function_invocations_total{event=\"http_api\"} 2\n", "promlake_function_cold_starts_total 1\n", "promlake_function_billed_gb_seconds_total 0.",
			"promlake_function_duration_seconds_count{event=\"http_api\"} 2\n",
		} {
			require.Contains(t, text, want)
		}
		require.NoError(t, f.Stop(), "SIGTERM ends it in time")
	}
}

func TestLogsAreJSON(t *testing.T) {
	var out bytes.Buffer
	f := emulator.New(emulator.Settings{
		Path: programs["ingest-fn"], Log: &out, Env: []string{"PROMLAKE_STORE=file://" + t.TempDir(), "PROMLAKE_LOG_LEVEL=debug"}, Grace: 5 * time.Minute,
	})
	require.Equal(t, 204, ask(t, f, recorded(t, "http-api-write-v1")).Status)
	require.NoError(t, f.Stop())
	for line := range strings.Lines(out.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Contains(t, out.String(), `"msg":"function started"`)
}

// TestColdStarts logs the time from the start of each function's process to its first answer: to a
// write, to a query over a block, to a schedule.
func TestColdStarts(t *testing.T) {
	s := start(t, "PROMLAKE_INGEST_MODE=direct")
	require.Equal(t, 204, ask(t, s.ingest, recorded(t, "http-api-write-v1")).Status)
	_, err := s.compact.Invoke(t.Context(), recorded(t, "eventbridge-rule").payload(t))
	require.NoError(t, err)
	for _, tc := range []struct {
		name  string
		f     *emulator.Function
		event event
	}{
		{"ingest", s.ingest, recorded(t, "http-api-write-v1")},
		{"query", s.query, recorded(t, "http-api-query")},
		{"compact", s.compact, recorded(t, "eventbridge-rule")},
	} {
		for range 5 {
			tc.f.Kill()
			_, err := tc.f.Invoke(t.Context(), tc.event.payload(t))
			require.NoError(t, err)
		}
		for _, c := range tc.f.ColdStarts() {
			t.Logf("%s: ready after %s, answered after %s", tc.name, c.Ready.Round(time.Millisecond), c.Answer.Round(time.Millisecond))
		}
	}
}
