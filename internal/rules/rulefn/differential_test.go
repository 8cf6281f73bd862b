package rulefn_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/prometheus/prometheus/util/strutil"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

var stepTimelines = flag.Uint64("steptimelines", 20, "random timelines that are compared with upstream's groups")

// TestTimelinesEqualUpstreams compares groups whose state is encoded and decoded between any two
// evaluations with groups of upstream that are never restarted: over random timelines, in which
// series come and go, queries fail, evaluations are missed and rules change, all samples and
// notifications are equal, and what upstream's API shows of the groups.
func TestTimelinesEqualUpstreams(t *testing.T) {
	for seed := range *stepTimelines {
		compare(t, seed)
		if t.Failed() {
			return
		}
	}
}

const (
	stepResend = time.Minute
	namespace  = "n"
)

var link = &url.URL{Scheme: "http", Host: "example.com", Path: "/p"}

// timeline is what the expressions of rules return, by time.
type timeline struct {
	r      *rand.Rand
	on     map[string]bool
	now    time.Time
	failed map[string]bool
	values map[string]float64
}

// advance draws what is true from now on.
func (l *timeline) advance(now time.Time) {
	l.now = now
	l.failed = map[string]bool{}
	for _, e := range []string{"a", "b"} {
		l.failed[e] = l.r.IntN(40) == 0
		for _, x := range []string{"1", "2", "3"} {
			if l.r.IntN(7) == 0 {
				l.on[e+x] = !l.on[e+x]
			}
			l.values[e+x] = []float64{1, 7, 7, 7, math.Inf(1), math.NaN(), l.r.NormFloat64()}[l.r.IntN(7)]
		}
	}
}

// query implements rules.QueryFunc.
func (l *timeline) query(_ context.Context, expr string, at time.Time) (promql.Vector, error) {
	if expr == "count(c)" { // of a template
		return promql.Vector{{Metric: labels.EmptyLabels(), T: at.UnixMilli(), F: 4}}, nil
	}
	if l.failed[expr] {
		return nil, errors.New("wrong")
	}
	var out promql.Vector
	for _, x := range []string{"1", "2", "3"} {
		if !l.on[expr+x] {
			continue
		}
		s := promql.Sample{Metric: labels.FromStrings("__name__", expr, "x", x, "job", "<&>é"), T: at.UnixMilli(), F: l.values[expr+x]}
		if x == "3" && expr == "b" {
			s.F, s.H = 0, tsdbutil.GenerateTestFloatHistogram(int64(at.Second()))
		}
		out = append(out, s)
	}
	return out, nil
}

// randomGroup returns a group of recording and alerting rules, some of which write the same series.
func randomGroup(r *rand.Rand, interval time.Duration, offset model.Duration) rulestore.Group {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	duration := func(all ...time.Duration) model.Duration { return model.Duration(all[r.IntN(len(all))]) }
	g := rulestore.Group{Name: "g", Interval: model.Duration(interval), QueryOffset: &offset}
	if r.IntN(5) == 0 {
		g.Limit = 2
	}
	if r.IntN(3) == 0 {
		g.Labels = map[string]string{"team": "a"}
	}
	for range 1 + r.IntN(4) {
		one := rulestore.Rule{Expr: pick("a", "b"), Labels: map[string]string{}}
		if r.IntN(3) == 0 {
			one.Record = pick("r1", "r2", "ALERTS")
			one.Labels["s"] = pick("1", "2", "")
			g.Rules = append(g.Rules, one)
			continue
		}
		one.Alert = pick("Alert1", "Alert2")
		one.For = duration(0, 0, interval, 4*interval)
		one.KeepFiringFor = duration(0, interval, 3*interval)
		one.Labels["severity"] = pick("page", `{{ if gt $value 5.0 }}high{{ else }}low{{ end }}`, `{{ $labels.x }}`, "{{ wrong")
		if r.IntN(4) == 0 {
			one.Labels["x"] = pick("same", "") // may leave equal label sets
		}
		if r.IntN(6) == 0 {
			one.Labels["alertstate"] = "mine"
		}
		one.Annotations = map[string]string{}
		for i, text := range []string{
			`{{ $value | humanize }} of {{ $labels.job }}`, `{{ with query "count(c)" }}{{ . | first | value }}{{ end }}`,
			`{{ if gt $value 5.0 }}{{ else }}x{{ end }}`, "{{ $externalURL }} {{ $externalLabels.cluster }}",
		} {
			if r.IntN(4) == 0 {
				one.Annotations[fmt.Sprint("a", i)] = text
			}
		}
		g.Rules = append(g.Rules, one)
	}
	return g
}

// changed returns a group in which a rule was changed, removed, or added.
func changed(r *rand.Rand, g rulestore.Group) rulestore.Group {
	g.Rules = slices.Clone(g.Rules)
	at := r.IntN(len(g.Rules))
	switch other := randomGroup(r, time.Duration(g.Interval), *g.QueryOffset); r.IntN(4) {
	case 0:
		g.Rules[at] = other.Rules[0]
	case 1:
		g.Rules = append(g.Rules, other.Rules[0])
	case 2:
		g.Rules = slices.Delete(g.Rules, at, at+1)
	default:
		g.Rules[at].For, g.Rules[at].KeepFiringFor = 6*g.Interval, 0
	}
	return g
}

// record is what was written and sent, as sorted text.
type record []string

// add adds the samples of a transaction.
func (r *record) add(tx *appender.Transaction) error {
	for _, s := range tx.Samples {
		text := fmt.Sprintf("%s %d %016x", s.Labels(), s.T, math.Float64bits(s.V))
		if fh := s.Histogram().FH; fh != nil {
			h := fh.Copy()
			h.CounterResetHint = histogram.UnknownCounterReset
			text += fmt.Sprintf(" %s %016x", h, math.Float64bits(h.Sum))
		}
		*r = append(*r, text)
	}
	return nil
}

// Send implements rules.Sender.
func (r *record) Send(alerts ...*notifier.Alert) {
	for _, a := range alerts {
		*r = append(*r, fmt.Sprintf("alert %s %s %s %s %s", a.Labels, a.Annotations, a.StartsAt.UTC(), a.EndsAt.UTC(), a.GeneratorURL))
	}
}

// take returns what was recorded, and forgets it.
func (r *record) take() []string {
	out := slices.Clone(*r)
	sort.Strings(out)
	*r = nil
	return out
}

// external are the external labels of both.
var external = labels.FromStrings("cluster", "prod")

// stepUpstream returns a group of upstream's.
func stepUpstream(t *testing.T, g rulestore.Group, opts *rules.ManagerOptions) *rules.Group {
	t.Helper()
	p := parser.NewParser(parser.Options{})
	var made []rules.Rule
	for _, r := range g.Rules {
		expr, err := p.ParseExpr(r.Expr)
		require.NoError(t, err)
		ls := rules.FromMaps(g.Labels, r.Labels)
		if r.Record != "" {
			made = append(made, rules.NewRecordingRule(r.Record, expr, ls))
			continue
		}
		made = append(made, rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), time.Duration(r.KeepFiringFor), ls, labels.FromMap(r.Annotations), external, link.String(), true, slog.New(slog.DiscardHandler)))
	}
	return rules.NewGroup(rules.GroupOptions{
		Name: g.Name, File: namespace, Interval: time.Duration(g.Interval), Limit: g.Limit, Rules: made, QueryOffset: (*time.Duration)(g.QueryOffset), Opts: opts,
	})
}

func compare(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	interval := []time.Duration{15 * time.Second, time.Minute, 3 * time.Minute}[r.IntN(3)]
	def := randomGroup(r, interval, model.Duration([]time.Duration{0, 45 * time.Second}[r.IntN(2)]))
	data := &timeline{r: r, on: map[string]bool{}, values: map[string]float64{}}

	var want, got record
	metrics := rules.NewGroupMetrics(nil)
	theirs := appender.V1{Appendable: appender.New(want.add)}
	opts := &rules.ManagerOptions{
		QueryFunc: data.query, NotifyFunc: rules.SendAlerts(&want, link.String()), ExternalURL: link, Appendable: theirs, Context: t.Context(),
		ResendDelay: stepResend, Logger: slog.New(slog.DiscardHandler), Metrics: metrics,
	}
	live := stepUpstream(t, def, opts)

	options := &rulefn.Options{
		Parser: parser.NewParser(parser.Options{}), ResendDelay: stepResend, ExternalURL: link, ExternalLabels: external, MaxSeries: 1000,
		Link:  func(expr string) string { return link.String() + strutil.TableLinkForExpression(expr) },
		Retry: func(error) bool { return false }, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	options.Prepare()
	ours := appender.V1{Appendable: appender.New(got.add)}
	group, err := rulefn.Compile(options, namespace, def)
	require.NoError(t, err)
	state := &rulestate.Group{}

	at := group.Last(time.Unix(1_700_000_000, 123))
	require.Equal(t, live.EvalTimestamp(time.Unix(1_700_000_000, 123).UnixNano()), at)
	for step := range 40 {
		if r.IntN(25) == 0 && len(def.Rules) > 1 {
			def = changed(r, def)
			next := stepUpstream(t, def, opts)
			next.CopyState(live)
			live = next
			group, err = rulefn.Compile(options, namespace, def)
			require.NoError(t, err)
		}
		data.advance(at)
		live.Eval(t.Context(), at)
		after, res, err := group.Eval(t.Context(), state, at, rulefn.Data{Query: data.query, To: ours})
		require.NoError(t, err)
		for _, n := range res.Notifications {
			got.Send(&notifier.Alert{Labels: n.Labels, Annotations: n.Annotations, StartsAt: n.StartsAt, EndsAt: n.EndsAt, GeneratorURL: n.GeneratorURL})
		}
		require.Equal(t, want.take(), got.take(), "timeline %d, step %d", seed, step)

		body, err := rulestate.Encode(after)
		require.NoError(t, err)
		state, err = rulestate.Decode(body)
		require.NoError(t, err)
		again, err := rulestate.Encode(state)
		require.NoError(t, err)
		require.Equal(t, body, again)
		require.Equal(t, describe(live), describeShown(group.Shown(state, nil)), "timeline %d, step %d", seed, step)
		at = at.Add(interval * time.Duration(1+max(0, r.IntN(12)-10)*r.IntN(9)))
	}
}

// describe returns what upstream's API shows of a group, without times of the clock.
func describe(g *rules.Group) (out []string) {
	out = append(out, fmt.Sprintln(g.Name(), g.File(), g.Interval().Seconds(), g.Limit()))
	for _, rule := range g.Rules() {
		// Of several samples that are refused, upstream's error names that of any alert.
		failure, _, _ := strings.Cut(fmt.Sprint(rule.LastError()), ";")
		text := fmt.Sprintln(rule.Name(), rule.Query(), rule.Labels(), rule.Health(), failure, rule.GetEvaluationTimestamp().IsZero())
		if a, ok := rule.(*rules.AlertingRule); ok {
			text += fmt.Sprintln(a.State(), a.HoldDuration().Seconds(), a.KeepFiringFor().Seconds(), a.Annotations())
			var alerts []string
			for _, one := range a.ActiveAlerts() {
				alerts = append(alerts, fmt.Sprintln(one.Labels, one.Annotations, one.State, one.ActiveAt.UTC(), one.KeepFiringSince.UTC(), strconv.FormatFloat(one.Value, 'e', -1, 64)))
			}
			sort.Strings(alerts)
			text += fmt.Sprint(alerts)
		}
		out = append(out, text)
	}
	return out
}

// describeShown returns the same of a group as Promlake shows it.
func describeShown(g *v1.RuleGroup) (out []string) {
	out = append(out, fmt.Sprintln(g.Name, g.File, g.Interval, g.Limit))
	for _, rule := range g.Rules {
		r, _ := rule.(v1.RecordingRule)
		a, alerts := rule.(v1.AlertingRule)
		if alerts {
			r = v1.RecordingRule{Name: a.Name, Query: a.Query, Labels: a.Labels, Health: a.Health, LastError: a.LastError, LastEvaluation: a.LastEvaluation}
		}
		failure, _, _ := strings.Cut(cmp.Or(r.LastError, "<nil>"), ";")
		text := fmt.Sprintln(r.Name, r.Query, r.Labels, r.Health, failure, r.LastEvaluation.IsZero())
		if alerts {
			text += fmt.Sprintln(a.State, a.Duration, a.KeepFiringFor, a.Annotations)
			var alerts []string
			for _, one := range a.Alerts {
				since := cmp.Or(one.KeepFiringSince, &time.Time{})
				alerts = append(alerts, fmt.Sprintln(one.Labels, one.Annotations, one.State, one.ActiveAt.UTC(), since.UTC(), one.Value))
			}
			sort.Strings(alerts)
			text += fmt.Sprint(alerts)
		}
		out = append(out, text)
	}
	return out
}
