package ruler_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/rules/ruler"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// server is the API over a store.
type server struct {
	url     string
	changes atomic.Int64
	reg     *prometheus.Registry
	memory  *memory.Budget
}

func serve(t *testing.T, s ruler.Settings, store objstore.Store) *server {
	t.Helper()
	return serveWithin(t, s, store, nil)
}

// serveWithin serves within a memory budget.
func serveWithin(t *testing.T, s ruler.Settings, store objstore.Store, budget *memory.Budget) *server {
	t.Helper()
	x := &server{reg: prometheus.NewRegistry(), memory: budget}
	mux := http.NewServeMux()
	for _, r := range ruler.Routes(s, store, func() { x.changes.Add(1) }, x.memory, x.reg, slog.New(slog.DiscardHandler)) {
		mux.Handle(r.Pattern, r.Handler)
	}
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	x.url = h.URL
	return x
}

func defaults() ruler.Settings { return settings.Default[ruler.Settings]() }

// do sends a request of a tenant; "" is the default one.
func (x *server) do(t *testing.T, method, path, id, body string) (int, string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, x.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if id != "" {
		r.Header.Set(tenant.Header, id)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text), resp.Header.Get("Content-Type")
}

const up = `name: up
interval: 30s
rules:
- record: up:sum
  expr: sum(up)
- alert: Down
  expr: up == 0
  for: 5m
  keep_firing_for: 1m
  labels: {severity: page}
  annotations:
    summary: "{{ $labels.instance }} is down"
`

// shown is how the API answers with up.
const shown = `name: up
interval: 30s
rules:
    - record: up:sum
      expr: sum(up)
    - alert: Down
      expr: up == 0
      for: 5m
      keep_firing_for: 1m
      labels:
        severity: page
      annotations:
        summary: '{{ $labels.instance }} is down'
`

func TestSetGetListRemove(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	x := serve(t, defaults(), store)
	for _, prefix := range []string{"", "/prometheus"} {
		rules := prefix + "/config/v1/rules"
		code, body, kind := x.do(t, "GET", rules, "a", "")
		require.Equal(t, 200, code)
		require.Equal(t, "{}\n", body)
		require.Equal(t, "application/yaml", kind)

		code, body, kind = x.do(t, "POST", rules+"/team%20a%2Fapi", "a", up)
		require.Equal(t, 202, code, body)
		require.JSONEq(t, `{"status":"success","data":null,"errorType":"","error":""}`, body)
		require.Equal(t, "application/json", kind)
		code, _, _ = x.do(t, "POST", rules+"/z", "a", "name: 1/2\nrules: []\n")
		require.Equal(t, 202, code)

		code, body, _ = x.do(t, "GET", rules+"/team%20a%2Fapi/up", "a", "")
		require.Equal(t, 200, code)
		require.Equal(t, shown, body)
		indented := "team a/api:\n    - " + strings.ReplaceAll(strings.TrimSpace(shown), "\n", "\n      ") + "\n"
		code, body, _ = x.do(t, "GET", rules+"/team%20a%2Fapi", "a", "")
		require.Equal(t, 200, code)
		require.YAMLEq(t, indented, body)
		_, body, _ = x.do(t, "GET", rules, "a", "")
		require.YAMLEq(t, indented+"z:\n    - name: 1/2\n      rules: []\n", body)
		_, body, _ = x.do(t, "GET", rules, "b", "")
		require.Equal(t, "{}\n", body, "another tenant")
		code, body, _ = x.do(t, "POST", rules+"/z", "a", shown)
		require.Equal(t, 202, code, "what it answers can be sent back: %s", body)

		for _, gone := range []struct{ method, path, text string }{
			{"GET", "/z/nothing", "group does not exist\n"},
			{"GET", "/nothing/up", "group does not exist\n"},
			{"DELETE", "/z/nothing", "group does not exist\n"},
			{"DELETE", "/nothing", "group namespace does not exist\n"},
		} {
			code, body, _ = x.do(t, gone.method, rules+gone.path, "a", "")
			require.Equal(t, 404, code, gone.path)
			require.Equal(t, gone.text, body)
		}
		code, _, _ = x.do(t, "GET", rules+"/nothing", "a", "")
		require.Equal(t, 200, code)
		code, body, _ = x.do(t, "DELETE", rules+"/z/1%2F2", "a", "")
		require.Equal(t, 202, code)
		require.JSONEq(t, `{"status":"success","data":null,"errorType":"","error":""}`, body)
		for _, ns := range []string{"/z", "/team%20a%2Fapi"} {
			code, _, _ = x.do(t, "DELETE", rules+ns, "a", "")
			require.Equal(t, 202, code)
		}
	}
	require.Equal(t, int64(12), x.changes.Load())
	require.Equal(t, []string{key.Rules("a")}, store.Keys())
}

// TestManyFields: the decoder of YAML keeps an error for each pair of equal fields.
func TestManyFields(t *testing.T) {
	x := serve(t, defaults(), memstore.New(memstore.Settings{}))
	for body, want := range map[string]string{
		strings.Repeat("a,", 1<<16): "line 2: fields of a mapping: 65536, the limit is 1000",
		strings.Repeat("a,", 1000):  `line 2: field "a" is already in line 2`,
	} {
		code, answer, _ := x.do(t, "POST", "/config/v1/rules/n", "", "name: g\nlabels: {"+body+"}\nrules: []\n")
		require.Equal(t, 400, code)
		require.Contains(t, answer, want)
	}
}

func TestRefused(t *testing.T) {
	s := defaults()
	s.MaxGroups, s.MaxRules, s.MaxBytes, s.MinInterval, s.Expressions = 2, 3, 2000, time.Second, expression.Limits{MaxDepth: 10}
	s.MaxNameBytes, s.MaxMemoryBytes = 20, 76<<10
	x := serve(t, s, memstore.New(memstore.Settings{}))
	for _, name := range []string{"one", "two"} {
		code, _, _ := x.do(t, "POST", "/config/v1/rules/n", "", "name: "+name+"\nrules: [{record: r, expr: v}]\n")
		require.Equal(t, 202, code)
	}
	for _, tc := range []struct {
		name, body string
		code       int
		want       string
	}{
		{"no YAML", "name: [", 400, "unable to decode rule group: yaml: line 1: "},
		{"nothing", "", 400, "want a rule group with the fields name, interval and rules, got something else"},
		{"a list", "- name: g\n", 400, "want a rule group with the fields name, interval and rules, got something else"},
		{"a file", "groups: [{name: g}]\n", 400, "send each of its groups by itself"},
		{"two", "name: g\n---\nname: h\n", 400, "want one YAML document with one rule group, got several"},
		{"binary", "name: !!binary /w==\nrules: []\n", 400, "line 1: binary data is no text"},
		{"no name", "rules: []\n", 400, "the rule group has no name"},
		{"unknown field", "name: g\nintervall: 1m\n", 400, "line 2: field intervall not found"},
		{"unknown field of a rule", "name: g\nrules:\n- {record: r, expr: v, exp: x}\n", 400, "line 3: field exp not found in type rulefmt.Rule"},
		{"federated", "name: g\nsource_tenants: [b]\nrules: []\n", 400, `rule group "g": source_tenants: federated rule groups are not supported`},
		{"aligned", "name: g\nalign_evaluation_time_on_interval: true\nrules: []\n", 400, `rule group "g": align_evaluation_time_on_interval is not supported`},
		{"two offsets", "name: g\nevaluation_delay: 1m\nquery_offset: 2m\nrules: []\n", 400, "evaluation_delay is the former name of query_offset"},
		{"interval", "name: g\ninterval: 999ms\nrules: []\n", 400, `rule group "g": interval: want 1s or more (--ruler.min-rule-evaluation-interval), got 999ms`},
		{"limit", "name: g\nlimit: -1\nrules: []\n", 400, `group "g": limit: want 0 (none) or more, got -1`},
		{"label", "name: g\nlabels: {__name__: x}\nrules: []\n", 400, `group "g": invalid label name: __name__`},
		{"expression", "name: g\nrules:\n- record: ok\n  expr: v\n- record: r\n  expr: sum(\n", 400, `6:9: group "g", rule 2, "r": could not parse expression: 1:5: parse error: unclosed left parenthesis`},
		{"both", "name: g\nrules:\n- {record: r, alert: a, expr: v}\n", 400, `group "g", rule 1, "a": only one of 'record' and 'alert' must be set`},
		{"two errors", "name: g\nrules:\n- {alert: A, expr: v, annotations: {x: '{{ $y }}'}}\n- {record: r, expr: v, for: 1m}\n", 400, `rule 2, "r": invalid field 'for' in recording rule`},
		{"depth", "name: g\nrules: [{record: r, expr: '" + strings.Repeat("(", 11) + "'}]\n", 400, `group "g", rule 1, "r": expression exceeds the limit of 10 levels of brackets and operators`},
		{"depth of an annotation", "name: g\nrules: [{alert: A, expr: v, annotations: {a: '" + strings.Repeat("{{if.}}", 101) + "'}}]\n", 400, `group "g", rule 1, "A": annotation "a": template exceeds the limit of 100 levels`},
		{"depth of a group's label", "name: g\nlabels: {a: '{{" + strings.Repeat("(", 101) + "}}'}\nrules: [{alert: A, expr: v}]\n", 400, `group "g": label "a": template exceeds the limit of 100 levels`},
		{"rules", "name: g\nrules: [" + strings.Repeat("{record: r, expr: v},", 4) + "]\n", 400, `rule group "g": rules of a group: 4, the limit is 3 (--ruler.max-rules-per-rule-group)`},
		{"groups", "name: three\nrules: []\n", 400, `rule group "three": rule groups of the tenant: 3, the limit is 2 (--ruler.max-rule-groups-per-tenant)`},
		{"name", "name: " + strings.Repeat("x", 21) + "\nrules: []\n", 400, "bytes of the name of a rule group: 21, the limit is 20 (--ruler.max-name-bytes)"},
		{"name of a rule", "name: g\nrules: [{alert: " + strings.Repeat("x", 21) + ", expr: v}]\n", 400, "bytes of the name of a rule: 21, the limit is 20 (--ruler.max-name-bytes)"},
		{"memory", "name: one\nrules: [{record: r, expr: v},{record: r, expr: v,labels: {a: b}}," + "{record: r, expr: " + strings.Repeat("v", 1500) + "}]\n", 400, `rule group "one": bytes of memory of the tenant's rule groups: `},
		{"bytes", "name: one\nrules: [{record: r, expr: v, labels: {l: " + strings.Repeat("x", 1900) + "}}]\n", 400, `(--ruler.max-bytes-per-tenant)`},
		{"body", "name: one\nrules: []\n" + strings.Repeat("#", 2000), 413, "bytes of the body, at least: 2001, the limit is 2000 (--ruler.max-bytes-per-tenant)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, body, _ := x.do(t, "POST", "/config/v1/rules/n", "", tc.body)
			require.Equal(t, tc.code, code, body)
			require.Contains(t, body, tc.want)
		})
	}
	code, body, _ := x.do(t, "POST", "/config/v1/rules/"+strings.Repeat("x", 21), "", "name: one\nrules: []\n")
	require.Equal(t, 400, code)
	require.Contains(t, body, "bytes of the name of a namespace: 21, the limit is 20")
	code, body, _ = x.do(t, "POST", "/config/v1/rules/%ff", "", "name: one\nrules: []\n")
	require.Equal(t, 400, code, body)
	code, body, _ = x.do(t, "GET", "/config/v1/rules", "a/b", "")
	require.Equal(t, 400, code, body)
	_, body, _ = x.do(t, "GET", "/config/v1/rules", "", "")
	require.Equal(t, "\"n\":\n    - name: one\n      rules:\n        - record: r\n          expr: v\n    - name: two\n      rules:\n        - record: r\n          expr: v\n", body, "nothing was changed")
	require.NoError(t, testutil.GatherAndCompare(x.reg, strings.NewReader(`
# HELP promlake_ruler_limited_total Changes of rule groups that were refused because of a limit: groups, bytes and memory of a tenant, rules of a group, expression or template of a rule, length of a name, fields of a mapping.
# TYPE promlake_ruler_limited_total counter
promlake_ruler_limited_total{limit="bytes"} 2
promlake_ruler_limited_total{limit="expression"} 1
promlake_ruler_limited_total{limit="fields"} 0
promlake_ruler_limited_total{limit="groups"} 1
promlake_ruler_limited_total{limit="memory"} 1
promlake_ruler_limited_total{limit="name"} 3
promlake_ruler_limited_total{limit="rules"} 1
promlake_ruler_limited_total{limit="template"} 2
`)))

	// Whoever is beyond a limit that was lowered may still remove and shorten.
	for _, name := range []string{"one", "two"} {
		code, _, _ = x.do(t, "POST", "/config/v1/rules/n", "", "name: "+name+"\nrules: []\n")
		require.Equal(t, 202, code)
	}
}

// TestBodiesCountInTheMemoryBudget: a body is charged as it arrives and before it is parsed, also
// one of few bytes with many values.
func TestBodiesCountInTheMemoryBudget(t *testing.T) {
	budget := memory.New(64<<20, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, nil)
	x := serveWithin(t, defaults(), memstore.New(memstore.Settings{}), budget)
	code, body, _ := x.do(t, "POST", "/config/v1/rules/n", "", "name: g\nrules: ["+strings.Repeat("a,", 200_000)+"]\n")
	require.Equal(t, 503, code, body)
	require.Contains(t, body, "--memory-limit")
	code, body, _ = x.do(t, "POST", "/config/v1/rules/n", "", `{"name":"g","rules":[{"record":"r","expr":"{a=~'`+strings.Repeat(`\\p{L}`, 7000)+`'}"}]}`)
	require.Equal(t, 503, code, body)
	code, body, _ = x.do(t, "POST", "/config/v1/rules/n", "", up)
	require.Equal(t, 202, code, body)
	require.NoError(t, budget.TryAcquire(64<<20), "all was released")
}

// TestAccepted: what Mimir's clients send besides Prometheus' fields.
func TestAccepted(t *testing.T) {
	x := serve(t, defaults(), memstore.New(memstore.Settings{}))
	for body, want := range map[string]string{
		"name: g\nsource_tenants: []\nrules: []\n":                       "name: g\nrules: []\n",
		"name: g\nalign_evaluation_time_on_interval: false\nrules: []\n": "name: g\nrules: []\n",
		"name: g\nevaluation_delay: 1m\nrules: []\n":                     "name: g\nquery_offset: 1m\nrules: []\n",
		`{"name":"g","rules":[{"record":"r","expr":"v"}]}`:               "name: g\nrules:\n    - record: r\n      expr: v\n",
		"name: g\n": "name: g\nrules: []\n",
		"name: g\nlabels: {a: b}\nlimit: 3\nrules: [&x {record: r, expr: v}, *x]\n": "name: g\nlimit: 3\nlabels:\n    a: b\nrules:\n    - record: r\n      expr: v\n    - record: r\n      expr: v\n",
	} {
		code, text, _ := x.do(t, "POST", "/config/v1/rules/n", "", body)
		require.Equal(t, 202, code, text)
		_, text, _ = x.do(t, "GET", "/config/v1/rules/n/g?subtype=mimir", "", "")
		require.Equal(t, want, text)
	}
}

func TestStoreFails(t *testing.T) {
	down := atomic.Bool{}
	store := memstore.New(memstore.Settings{Faults: func(memstore.Call) memstore.Fault {
		if down.Load() {
			return memstore.Fault{Err: fmt.Errorf("the store is away")}
		}
		return memstore.Fault{}
	}})
	x := serve(t, defaults(), store)
	down.Store(true)
	for _, r := range [][2]string{{"GET", ""}, {"GET", "/n"}, {"GET", "/n/g"}, {"POST", "/n"}, {"DELETE", "/n"}, {"DELETE", "/n/g"}} {
		code, body, _ := x.do(t, r[0], "/config/v1/rules"+r[1], "", up)
		require.Equal(t, 500, code)
		require.Contains(t, body, "the store is away")
	}
	require.Zero(t, x.changes.Load())
	down.Store(false)
	_, err := store.Put(t.Context(), key.Rules(tenant.Default), strings.NewReader(`{"version":1}`), objstore.Condition{})
	require.NoError(t, err)
	code, body, _ := x.do(t, "POST", "/config/v1/rules/n", "", up)
	require.Equal(t, 500, code, "damaged rules are not overwritten")
	require.Contains(t, body, "damaged")
}

func TestDisabled(t *testing.T) {
	s := defaults()
	s.Enabled = false
	require.Empty(t, ruler.Routes(s, memstore.New(memstore.Settings{}), nil, nil, nil, nil))
}

// TestNamesInPaths: any text may be the name of a namespace or group, also a slash alone, which
// patterns of http.ServeMux do not match.
func TestNamesInPaths(t *testing.T) {
	x := serve(t, defaults(), memstore.New(memstore.Settings{}))
	for _, name := range []string{"/", "a/b", "//", "..", "%2F", "ä b", "?", "{names...}"} {
		at := "/config/v1/rules/" + url.PathEscape(name)
		if name == ".." {
			at = "/config/v1/rules/%2e%2e"
		}
		code, body, _ := x.do(t, "POST", at, "", fmt.Sprintf("name: %q\nrules: []\n", name))
		require.Equal(t, 202, code, "%s: %s", name, body)
		for _, prefix := range []string{"", "/prometheus"} {
			code, body, _ = x.do(t, "GET", prefix+at, "", "")
			require.Equal(t, 200, code, "%s: %s", name, body)
			require.Contains(t, body, "name: ")
			code, body, _ = x.do(t, "GET", prefix+at+strings.TrimPrefix(at, "/config/v1/rules"), "", "")
			require.Equal(t, 200, code, "%s: %s", name, body)
		}
		code, _, _ = x.do(t, "DELETE", at+strings.TrimPrefix(at, "/config/v1/rules"), "", "")
		require.Equal(t, 202, code, name)
	}
	for _, path := range []string{"/config/v1/rules/", "/config/v1/rules/a/", "/config/v1/rules/a/b/c"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			code, body, _ := x.do(t, method, path, "", "name: a\nrules: []\n")
			require.Equal(t, 404, code, "%s %s: %s", method, path, body)
		}
	}
}
