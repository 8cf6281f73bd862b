package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// evaluating is a process with rules of upstream's.
type evaluating struct {
	api.Monitoring
	groups []*rules.Group
}

func (e evaluating) Rules(context.Context) v1.RulesRetriever { return e }
func (e evaluating) RuleGroups() []*rules.Group              { return e.groups }
func (e evaluating) AlertingRules() (all []*rules.AlertingRule) {
	for _, g := range e.groups {
		all = append(all, g.AlertingRules()...)
	}
	return all
}

// evaluated returns groups with rules in all states. No rule has two active alerts, because upstream
// shows these in a random order.
func evaluated(t *testing.T, b *tsdbBackend) (e evaluating) {
	opts := &rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(b.Engine, b.TestStorage), NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Appendable: b.TestStorage,
		Context: t.Context(), ExternalURL: &url.URL{}, Logger: slog.New(slog.DiscardHandler), Metrics: rules.NewGroupMetrics(nil),
	}
	expr := func(text string) parser.Expr {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		require.NoError(t, err)
		return parsed
	}
	alert := func(name, text string, hold, keep time.Duration) rules.Rule {
		return rules.NewAlertingRule(name, expr(text), hold, keep, labels.FromStrings("team", "a", "value", "{{ $value }} <&>"), labels.FromStrings("summary", "ü {{ $value }}"), labels.EmptyLabels(), "", true, opts.Logger)
	}
	record := func(name, text, team string) rules.Rule {
		return rules.NewRecordingRule(name, expr(text), labels.FromStrings("team", team))
	}
	group := func(file, name string, limit int, all ...rules.Rule) *rules.Group {
		return rules.NewGroup(rules.GroupOptions{Name: name, File: file, Interval: 90 * time.Second, Limit: limit, Rules: all, Opts: opts})
	}
	const ends = `requests_total{code="500"} > 0` // between the two evaluations
	e.groups = []*rules.Group{
		group("a", "alerts", 7,
			alert("Pending", `odd{kind="inf"}`, 24*time.Hour, 0), alert("Resolved", ends, 0, 0), alert("Kept", ends, 0, time.Hour),
			alert("Firing", `up{instance="a"}`, 0, time.Minute), alert("Also", `odd{kind="nan"}`, 0, 0), alert("Inactive", `up > 1`, 0, 0),
			alert("Wrong", `up + on() up`, 0, 0)),
		group("a", "empty", 0),
		group("a", "records", 0, record("n:a", "sum(up)", "a"), record("n:b", "up + on() up", "b"), record("n:a", "max(up)", "c")),
		group("b", "alerts", 0, alert("Firing", "vector(1)", 0, 0), record("n:a", "min(up)", "a")),
	}
	for _, at := range []int64{50, 80} {
		for _, g := range e.groups {
			rules.DefaultEvalIterationFunc(t.Context(), g, time.Unix(at*60, 0))
		}
	}
	e.groups = append(e.groups, group("b", "unknown", 0, alert("Never", "up", 0, 0), record("never", "up", "b")))
	return e
}

// TestRulesSameAsUpstream compares answers about groups that are values with those of upstream's
// handlers about its own groups, for random parameters.
func TestRulesSameAsUpstream(t *testing.T) {
	backend, settings := newBackend(t), testSettings()
	e := evaluated(t, backend)
	settings.Monitoring = e
	want := reference(t, backend, settings) + "/api/v1"
	all := send(t, want, params("/rules")).body
	settings.Monitoring, settings.Rules = nil, func(context.Context) ([]*v1.RuleGroup, error) {
		groups, err := decoded(all)
		return slices.Insert(groups, 1, &v1.RuleGroup{File: "a", Name: "empty"}), err
	}
	got := serve(t, newHandler(t, settings, backend)) + "/api/v1"

	choices := map[string][]string{
		"type": {"alert", "Record", "record", "other"}, "exclude_alerts": {"true", "T", "FALSE", "0", "maybe"},
		"group_limit": {"1", "2", "3", "4", "5", "0", "-1", "x", "2147483648"}, "group_next_token": {"", "x"},
		"rule_name[]": {"Firing", "Pending", "n:a", "never", "none"}, "rule_group[]": {"alerts", "records", "unknown", "none"}, "file[]": {"a", "b", "none"},
		"match[]": {`{team="a"}`, `{team=~"b|c"}`, `{team!="a",team!=""}`, `{value=~".*\\$value.*"}`, `{team=~".*"}`, `{}`, `{`, `x`},
	}
	for _, g := range e.groups {
		choices["group_next_token"] = append(choices["group_next_token"], fmt.Sprintf("%x", sha256.Sum256([]byte(g.File()+";"+g.Name()))))
	}
	requests := []httpRequest{params("/alerts"), params("/rules"), post("/rules", "type", "alert"), {path: "/rules?type=%"}, {path: "/rules?a;b"}, {path: "/rules", header: http.Header{"Accept-Encoding": {"gzip"}, "Origin": {"http://example.com"}}}}
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		var pairs []string
		for _, name := range []string{"type", "exclude_alerts", "group_limit", "group_next_token", "rule_name[]", "rule_group[]", "file[]", "match[]"} {
			for range max(0, r.IntN(5)-2) {
				// More often the first values, which are valid.
				pairs = append(pairs, name, choices[name][r.IntN(1+r.IntN(len(choices[name])))])
			}
		}
		requests = append(requests, params("/rules", pairs...))
	}
	seen, codes := map[string]bool{}, map[int]int{}
	for _, q := range requests {
		expected := send(t, want, q)
		require.Equal(t, expected, send(t, got, q), q)
		seen[expected.body] = true
		codes[expected.code]++
	}
	require.Greater(t, len(seen), 60, "parameters make a difference")
	require.Greater(t, min(codes[http.StatusOK], codes[http.StatusBadRequest]), 100, codes)

	settings.Rules = func(context.Context) ([]*v1.RuleGroup, error) { return nil, errors.New("away") }
	for _, path := range []string{"/rules", "/alerts"} {
		rec := get(t, newHandler(t, settings, backend), "/api/v1"+path)
		require.Equal(t, respond.FailureOf(promql.ErrStorage{}).Code, rec.Code)
		require.Contains(t, rec.Body.String(), "away")
	}
}

// decoded returns the groups of an answer.
func decoded(answer string) (out []*v1.RuleGroup, err error) {
	var body struct {
		Data struct{ Groups []*v1.RuleGroup }
	}
	err = json.Unmarshal([]byte(answer), &body)
	for _, g := range body.Data.Groups {
		for i, rule := range g.Rules {
			text, e := json.Marshal(rule)
			err = errors.Join(err, e)
			if rule.(map[string]any)["type"] == "recording" {
				var one v1.RecordingRule
				err = errors.Join(err, json.Unmarshal(text, &one))
				g.Rules[i] = one
			} else {
				var one v1.AlertingRule
				err = errors.Join(err, json.Unmarshal(text, &one))
				g.Rules[i] = one
			}
		}
	}
	return body.Data.Groups, err
}
