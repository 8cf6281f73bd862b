package functions

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// TestRules: the query function takes rules through Mimir's API. Events of a schedule evaluate them
// over what the ingest function wrote, also in a process that knows nothing yet, and by messages of
// a queue. Alertmanager gets the alerts.
func TestRules(t *testing.T) {
	var mu sync.Mutex
	var alerts []map[string]any
	alertmanager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var all []map[string]any
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &all)
		}
		if err != nil || r.URL.Path != "/api/v2/alerts" {
			http.Error(w, "wrong", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		alerts = append(alerts, all...)
	}))
	defer alertmanager.Close()

	s := start(t, "PROMLAKE_INGEST_MODE=direct", "PROMLAKE_RULER_ENABLE_API=true", "PROMLAKE_QUERY_MAX_STALENESS=0s")
	evaluator := func(env ...string) *emulator.Function {
		return lambdatest.Start(t, emulator.Settings{Path: programs["query-fn"], Name: "rules", Env: append([]string{
			"PROMLAKE_STORE=file://" + s.store, "PROMLAKE_RULER_SCHEDULED=true", "PROMLAKE_RULER_ALERTMANAGER_URL=" + alertmanager.URL,
			"PROMLAKE_RULER_ALERT_RELABEL_CONFIGS=- {source_labels: [tenant, alertname], regex: team-a;Quiet, action: drop}\n- {source_labels: [tenant], target_label: team}\n",
			"PROMLAKE_RULER_EXTERNAL_URL=https://prom.example.com", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		}, env...)})
	}
	tick := func(f *emulator.Function, time string) {
		t.Helper()
		e := recorded(t, "eventbridge-rule")
		e["time"] = time
		b, err := f.Invoke(t.Context(), e.payload(t))
		require.NoError(t, err)
		require.JSONEq(t, "null", string(b))
	}
	require.Equal(t, 204, ask(t, s.ingest, recorded(t, "http-api-write-v2")).Status)
	set := func(group string) answer {
		e := asking(t, "http-api-query-range-form", "/prometheus/config/v1/rules/web", "")
		e["headers"].(map[string]any)["content-type"] = "application/yaml"
		e["body"] = base64.StdEncoding.EncodeToString([]byte(group))
		return ask(t, s.query, e)
	}
	a := set("name: load\nrules: [{record: x, expr: 'sum('}]")
	require.Equal(t, 400, a.Status, a.Body)
	a = set(`name: load
rules:
- {record: "load:count", expr: "count(node_load5)"}
- {alert: High, expr: "load:count > 2", annotations: {summary: "{{ $value }} hosts"}}
- {alert: Quiet, expr: "vector(1)"}
- {alert: Slow, expr: "vector(1)", for: 1h}`)
	require.Equal(t, 202, a.Status, a.Body)

	value := func(expr, time string) map[string]string {
		return series(t, plain(t, ask(t, s.query, asking(t, "http-api-query", "/api/v1/query", "query="+expr+"&time="+time))))
	}
	first := evaluator()
	tick(first, "2025-11-24T16:01:00Z")
	require.Equal(t, map[string]string{"": "[1764000060 3]"}, value("load:count", "1764000060"))
	states, err := filepath.Glob(filepath.Join(s.store, "rules-state", "team-a", "*.json"))
	require.NoError(t, err)
	require.Len(t, states, 1)
	mu.Lock()
	require.Len(t, alerts, 1)
	require.Equal(t, map[string]any{"alertname": "High", "tenant": "team-a", "team": "team-a"}, alerts[0]["labels"], "the other one is dropped")
	require.Equal(t, map[string]any{"summary": "3 hosts"}, alerts[0]["annotations"])
	require.Equal(t, "https://prom.example.com/#/explore?g0.expr=load%3Acount+%3E+2&tenant=team-a", alerts[0]["generatorURL"])
	mu.Unlock()

	second := evaluator()
	tick(second, "2025-11-24T16:04:00Z")
	require.Equal(t, map[string]string{"": "[1764000240 4]"}, value("count_over_time(load:count[5m])", "1764000240"), "missed minutes are made up for")

	sqs, q := sqstest.Start(t), memqueue.New(memqueue.Settings{})
	third := evaluator("PROMLAKE_RULER_QUEUE_URL="+sqs.Add("rules.fifo", q), "PROMLAKE_RULER_MAX_RULES_PER_INVOCATION=1")
	tick(third, "2025-11-24T16:05:00Z")
	messages := q.Messages()
	require.Len(t, messages, 1)
	b, err := third.Invoke(t.Context(), message(t, "sqs-fifo", messages[0].Body).payload(t))
	require.NoError(t, err)
	require.JSONEq(t, `{"batchItemFailures":[]}`, string(b))
	require.Equal(t, map[string]string{"": "[1764000300 5]"}, value("count_over_time(load:count[5m])", "1764000300"))
	mu.Lock()
	for _, a := range alerts {
		require.Equal(t, alerts[0]["startsAt"], a["startsAt"], "the alert goes on in each process")
	}
	mu.Unlock()

	// Without its state the group is one that a server has evaluated. Its alert continues, as in
	// Prometheus later by the time without evaluations.
	const slow = `ALERTS_FOR_STATE{alertname="Slow"}`
	require.Equal(t, map[string]string{"": "[1764000300 1]"}, value(`count(`+slow+`)`, "1764000300"))
	require.NoError(t, os.Remove(states[0]))
	tick(evaluator(), "2025-11-24T16:07:00Z")
	require.Equal(t, map[string]string{"": "[1764000420 120]"}, value(`max(`+slow+`) - max(`+slow+` offset 2m)`, "1764000420"))
}
