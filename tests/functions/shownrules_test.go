package functions

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// TestShownRules: the function that evaluates rules shows them with the results of their last
// evaluation, also those that another process has made, in the form of Prometheus' API.
func TestShownRules(t *testing.T) {
	s := start(t, "PROMLAKE_INGEST_MODE=direct")
	evaluator := func() *emulator.Function {
		return lambdatest.Start(t, emulator.Settings{Path: programs["query-fn"], Name: "rules", Env: []string{
			"PROMLAKE_STORE=file://" + s.store, "PROMLAKE_RULER_SCHEDULED=true", "PROMLAKE_RULER_ENABLE_API=true",
		}})
	}
	first := evaluator()
	set := func(namespace, group string) {
		t.Helper()
		e := asking(t, "http-api-query-range-form", "/prometheus/config/v1/rules/"+namespace, "")
		e["body"] = base64.StdEncoding.EncodeToString([]byte(group))
		require.Equal(t, 202, ask(t, first, e).Status)
	}
	get := func(f *emulator.Function, path string, query url.Values) (code int, data map[string]any) {
		t.Helper()
		e := asking(t, "http-api-query", path, query.Encode())
		delete(e["headers"].(map[string]any), "accept-encoding")
		a := ask(t, f, e)
		var body struct{ Data map[string]any }
		require.NoError(t, json.Unmarshal([]byte(a.Body), &body), a.Body)
		return a.Status, body.Data
	}
	// names returns the groups of a request, with their rules.
	names := func(f *emulator.Function, query url.Values) (out []any, next any) {
		t.Helper()
		code, data := get(f, "/api/v1/rules", query)
		require.Equal(t, 200, code)
		for _, g := range data["groups"].([]any) {
			g := g.(map[string]any)
			out = append(out, g["file"].(string)+"/"+g["name"].(string))
			for _, r := range g["rules"].([]any) {
				r := r.(map[string]any)
				out = append(out, r["name"].(string)+" "+r["health"].(string))
			}
		}
		return out, data["groupNextToken"]
	}

	none, _ := names(first, nil)
	require.Empty(t, none)
	set("web", `name: load
interval: 30s
limit: 9
rules:
- {record: "load:count", expr: "count(node_load5)", labels: {team: a}}
- {alert: High, expr: "load:count > 2", labels: {severity: "{{ $value }}"}, annotations: {summary: "{{ $value }} hosts"}}
- {alert: Slow, expr: "load:count > 2", for: 1h, keep_firing_for: 2m}`)
	set("web", `{name: bad, rules: [{record: x, expr: "node_load5 + on() node_load5"}]}`)
	set("app", `{name: none, rules: [{alert: Never, expr: "load:count > 100"}]}`)
	unknown, _ := names(first, nil)
	require.Equal(t, []any{"app/none", "Never unknown", "web/bad", "x unknown", "web/load", "load:count unknown", "High unknown", "Slow unknown"}, unknown)

	require.Equal(t, 204, ask(t, s.ingest, recorded(t, "http-api-write-v2")).Status)
	tick := recorded(t, "eventbridge-rule")
	at := time.Date(2025, 11, 24, 16, 1, 0, 0, time.UTC)
	tick["time"] = at.Format(time.RFC3339)
	begin := time.Now()
	b, err := first.Invoke(t.Context(), tick.payload(t))
	require.NoError(t, err)
	require.JSONEq(t, "null", string(b))
	end := time.Now()
	second := evaluator()
	all, _ := names(second, nil)
	require.Equal(t, []any{"app/none", "Never ok", "web/bad", "x err", "web/load", "load:count ok", "High ok", "Slow ok"}, all)

	// evaluated checks times, and removes them: alerts have those of the schedule, evaluations those
	// of the clock.
	var evaluated func(v any)
	evaluated = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				evaluated(one)
			}
		case map[string]any:
			for name, between := range map[string][2]time.Time{"lastEvaluation": {begin, end}, "activeAt": {at.Add(-30 * time.Second), at}} {
				if text, ok := v[name]; ok {
					got, err := time.Parse(time.RFC3339Nano, text.(string))
					require.NoError(t, err)
					require.False(t, got.Before(between[0]) || got.After(between[1]), "%s %s", name, got)
					delete(v, name)
				}
			}
			if took, ok := v["evaluationTime"]; ok {
				require.Positive(t, took)
				require.LessOrEqual(t, took, end.Sub(begin).Seconds())
				delete(v, "evaluationTime")
			}
			for _, one := range v {
				evaluated(one)
			}
		}
	}
	const high = `{"labels": {"alertname": "High", "severity": "3", "team": "a"}, "annotations": {"summary": "3 hosts"}, "state": "firing", "value": "3e+00"}`
	const slow = `{"labels": {"alertname": "Slow", "team": "a"}, "annotations": {}, "state": "pending", "value": "3e+00"}`
	code, data := get(second, "/prometheus/api/v1/rules", url.Values{"rule_group[]": {"load"}})
	require.Equal(t, 200, code)
	evaluated(data)
	got, err := json.Marshal(data)
	require.NoError(t, err)
	require.JSONEq(t, `{"groups": [{"name": "load", "file": "web", "interval": 30, "limit": 9, "rules": [
		{"type": "recording", "name": "load:count", "query": "count(node_load5)", "labels": {"team": "a"}, "health": "ok"},
		{"type": "alerting", "name": "High", "query": "load:count > 2", "duration": 0, "keepFiringFor": 0, "labels": {"severity": "{{ $value }}"},
			"annotations": {"summary": "{{ $value }} hosts"}, "state": "firing", "health": "ok", "alerts": [`+high+`]},
		{"type": "alerting", "name": "Slow", "query": "load:count > 2", "duration": 3600, "keepFiringFor": 120, "labels": {}, "annotations": {},
			"state": "pending", "health": "ok", "alerts": [`+slow+`]}]}]}`, string(got))
	code, data = get(second, "/api/v1/alerts", nil)
	require.Equal(t, 200, code)
	evaluated(data)
	got, err = json.Marshal(data["alerts"])
	require.NoError(t, err)
	require.JSONEq(t, "["+high+", "+slow+"]", string(got))

	for _, tc := range []struct {
		query url.Values
		want  []any
	}{
		{url.Values{"type": {"record"}}, []any{"web/bad", "x err", "web/load", "load:count ok"}},
		{url.Values{"rule_name[]": {"Slow", "Never"}}, []any{"app/none", "Never ok", "web/load", "Slow ok"}},
		{url.Values{"file[]": {"app"}}, []any{"app/none", "Never ok"}},
		{url.Values{"match[]": {`{team="a"}`}}, []any{"web/load", "load:count ok"}},
	} {
		got, _ := names(second, tc.query)
		require.Equal(t, tc.want, got, tc.query)
	}
	page, next := names(second, url.Values{"group_limit": {"2"}})
	require.Equal(t, all[:4], page)
	page, next = names(second, url.Values{"group_limit": {"2"}, "group_next_token": {next.(string)}})
	require.Equal(t, all[4:], page)
	require.Nil(t, next)
	_, data = get(second, "/api/v1/rules", url.Values{"exclude_alerts": {"true"}, "rule_name[]": {"High"}})
	require.Empty(t, data["groups"].([]any)[0].(map[string]any)["rules"].([]any)[0].(map[string]any)["alerts"])
	_, data = get(second, "/api/v1/rules", url.Values{"rule_group[]": {"bad"}})
	require.Contains(t, data["groups"].([]any)[0].(map[string]any)["rules"].([]any)[0].(map[string]any)["lastError"], "many-to-many")

	other := asking(t, "http-api-query", "/api/v1/rules", "")
	other["headers"].(map[string]any)["x-scope-orgid"] = "team-b"
	require.JSONEq(t, `{"status": "success", "data": {"groups": []}}`, plain(t, ask(t, second, other)).Body, "rules of another tenant")
	elsewhere, _ := names(s.query, nil)
	require.Empty(t, elsewhere, "a function that evaluates none")

	states, err := filepath.Glob(filepath.Join(s.store, "rules-state", "team-a", "*.json"))
	require.NoError(t, err)
	require.Len(t, states, 3)
	require.NoError(t, os.WriteFile(states[0], []byte("{}"), 0o600))
	_, data = get(second, "/api/v1/rules", nil)
	var damaged []string
	for _, g := range data["groups"].([]any) {
		for _, r := range g.(map[string]any)["rules"].([]any) {
			if text, _ := r.(map[string]any)["lastError"].(string); strings.Contains(text, "decode rule state") {
				damaged = append(damaged, g.(map[string]any)["name"].(string))
				require.Contains(t, text, filepath.Base(states[0]))
				require.Equal(t, "err", r.(map[string]any)["health"])
			}
		}
	}
	require.NotEmpty(t, damaged, "the rules of the damaged group")
	require.Len(t, slices.Compact(damaged), 1, "no other group")
}
