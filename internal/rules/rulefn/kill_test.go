package rulefn_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/tests/support/memstore"
)

var (
	kills  = flag.Int("kills", 12, "kills of the function; 0: one before and one after every request")
	worlds = flag.Uint64("worlds", 2, "random data with which the function is killed")
)

const ticks = 8 // minutes

// groups read each other's results, their own, and those of alerts. No group reads those of counts:
// a late evaluation sees what a group with an offset has written meanwhile for the time before.
func groups() []rulestore.Group {
	offset := model.Duration(20 * time.Second)
	return []rulestore.Group{
		{Name: "alerts", Interval: model.Duration(30 * time.Second), Rules: []rulestore.Rule{
			{Alert: "High", Expr: "sum_v > 3", For: model.Duration(time.Minute), KeepFiringFor: model.Duration(45 * time.Second), Labels: map[string]string{"severity": "{{ if gt $value 8.0 }}page{{ else }}ticket{{ end }}"}, Annotations: map[string]string{"value": "{{ $value }} {{ with query \"count(sum_v)\" }}{{ . | first | value }}{{ end }}"}},
			{Record: "firing", Expr: `count by (alertstate) (ALERTS{alertname="High"})`},
		}},
		{Name: "counts", QueryOffset: &offset, Rules: []rulestore.Rule{
			{Record: "evaluations", Expr: "evaluations + 1 or vector(1)"},
			{Record: "window", Expr: "sum_over_time(firing[3m])"},
			{Alert: "Any", Expr: `count({__name__=~"firing|window"}) > 0`},
		}},
		{Name: "sums", Interval: model.Duration(15 * time.Second), Limit: 9, Rules: []rulestore.Rule{
			{Record: "sum_v", Expr: "v or v offset 1m", Labels: map[string]string{"by": "sums"}},
			{Record: "twice", Expr: "sum_v * 2 + sum_v offset 15s"},
		}},
	}
}

// TestKilledAtEveryRequest kills the function before and after requests to the store and to the
// receiver of notifications. Another one continues at the next minute. All samples and
// notifications that are delivered in the end are those of upstream's groups, which were never
// killed.
func TestKilledAtEveryRequest(t *testing.T) {
	for seed := range *worlds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			base := randomData(r, (ticks+2)*time.Minute)
			direct := seed%2 == 1
			wantSamples, wantSent := uninterrupted(t, base, groups(), ticks, resend(direct))
			whole := newWorld(t, base)
			whole.direct(direct)
			whole.rules(groups()...)
			run(whole)
			total := whole.calls
			samples, sent := whole.delivered()
			require.Equal(t, wantSamples, samples)
			require.ElementsMatch(t, slices.Collect(maps.Keys(wantSent)), slices.Collect(maps.Keys(sent)))
			require.NotEmpty(t, sent)
			all := 2 * total
			for n := range all {
				if *kills > 0 && r.IntN(all) >= *kills {
					continue
				}
				w := newWorld(t, base)
				w.direct(direct)
				w.rules(groups()...)
				w.kill, w.when = n/2+1, []memstore.When{memstore.Before, memstore.After}[n%2]
				run(w)
				samples, sent := w.delivered()
				require.Equal(t, wantSamples, samples, "killed at %d of %d", n, all)
				require.ElementsMatch(t, slices.Collect(maps.Keys(wantSent)), slices.Collect(maps.Keys(sent)), "killed at %d of %d", n, all)
			}
		})
	}
}

// run lets the function work for some minutes. Its last ticks are not killed, and find nothing that
// is due but what a kill has left. A group that was never evaluated begins at the tick that finds
// it, so that tick is repeated after a kill.
func run(w *world) {
	f := w.function()
	for i := range ticks + 2 {
		for !w.tick(f, origin.Add(time.Duration(min(i, ticks))*time.Minute)) {
			if f = w.function(); i > 0 {
				break
			}
		}
	}
}

// direct lets the notifications go to a receiver that does not merge them.
func (w *world) direct(direct bool) {
	if direct {
		w.set.Notify.Webhook, w.set.Notify.RepeatInterval = "http://receiver.example.com/", resend(true)
	}
}

// resend is the time after which an alert that still fires is sent again.
func resend(direct bool) time.Duration {
	if direct {
		return 15 * time.Minute
	}
	return time.Minute
}

// uninterrupted evaluates groups with upstream's for some minutes, each at its times.
func uninterrupted(t *testing.T, base *ruleeval.Memory, groups []rulestore.Group, minutes int, resend time.Duration) (samples, sent map[string]string) {
	t.Helper()
	engine := newEngine()
	defer func() { require.NoError(t, engine.Close()) }()
	samples, sent = map[string]string{}, map[string]string{}
	written := ruleeval.NewMemory(math.MaxInt64, "")
	to := appender.V1{Appendable: appender.New(func(tx *appender.Transaction) error {
		for _, s := range tx.Samples {
			samples[fmt.Sprintf("%s@%d", s.Labels(), s.T)] = fmt.Sprintf("%016x", math.Float64bits(s.V))
		}
		return written.Add(tx)
	})}
	link := &url.URL{Scheme: "http", Host: "example.com", Path: "/p"}
	opts := &rules.ManagerOptions{
		QueryFunc: func(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
			return rules.EngineQueryFunc(engine, ruleeval.Layers{base, written})(ctx, expr, at)
		},
		NotifyFunc: noting(sent, link.String()), ExternalURL: link, Appendable: to, Context: t.Context(),
		ResendDelay: resend, Logger: slog.New(slog.DiscardHandler), Metrics: rules.NewGroupMetrics(nil),
	}
	type moment struct {
		at time.Time
		g  *rules.Group
	}
	var all []moment
	for _, def := range groups {
		g := upstream(t, def, opts)
		for at := g.EvalTimestamp(origin.UnixNano()); !at.After(origin.Add(time.Duration(minutes) * time.Minute)); at = at.Add(g.Interval()) {
			all = append(all, moment{at, g})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, m := range all {
		m.g.Eval(t.Context(), m.at)
	}
	return samples, sent
}

// noting returns a rules.NotifyFunc that notes what is sent, each notification with its event: that
// an alert fires since a time, or that it has ended.
func noting(sent map[string]string, link string) rules.NotifyFunc {
	return func(ctx context.Context, expr string, alerts ...*rules.Alert) {
		for _, a := range alerts {
			event := fmt.Sprint(a.Labels, a.FiredAt, !a.ResolvedAt.IsZero())
			rules.SendAlerts(sender(func(n *notifier.Alert) {
				sent[text(rulestate.Notification{Labels: n.Labels, Annotations: n.Annotations, StartsAt: n.StartsAt, EndsAt: n.EndsAt, GeneratorURL: onPage(n.GeneratorURL)})] = event
			}), link)(ctx, expr, a)
		}
	}
}

// sender implements rules.Sender.
type sender func(*notifier.Alert)

// Send implements rules.Sender.
func (s sender) Send(alerts ...*notifier.Alert) {
	for _, a := range alerts {
		s(a)
	}
}

// requireEvents requires that only notifications were sent that a group that was never killed
// sends, and one of each event. Those that only repeat another one may be missing.
func requireEvents(t *testing.T, want, got map[string]string, where string) {
	t.Helper()
	missing := map[string]bool{}
	for _, event := range want {
		missing[event] = true
	}
	for n := range got {
		event, ok := want[n]
		require.True(t, ok, "%s: %s", where, n)
		delete(missing, event)
	}
	require.Empty(t, missing, where)
}

// onPage returns the address on the page for one of upstream's.
func onPage(link string) string {
	return strings.TrimSuffix(strings.Replace(link, "/graph?", "/#/explore?", 1), "&g0.tab=1")
}

func upstream(t *testing.T, g rulestore.Group, opts *rules.ManagerOptions) *rules.Group {
	t.Helper()
	interval := time.Duration(g.Interval)
	if interval == 0 {
		interval = time.Minute
	}
	var made []rules.Rule
	for _, r := range g.Rules {
		expr, err := language.ParseExpr(r.Expr)
		require.NoError(t, err)
		ls := rules.FromMaps(g.Labels, r.Labels)
		if r.Record != "" {
			made = append(made, rules.NewRecordingRule(r.Record, expr, ls))
		} else {
			made = append(made, rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), time.Duration(r.KeepFiringFor), ls, labels.FromMap(r.Annotations), labels.EmptyLabels(), "http://example.com/p", true, opts.Logger))
		}
	}
	return rules.NewGroup(rules.GroupOptions{Name: g.Name, File: "n", Interval: interval, Limit: g.Limit, Rules: made, QueryOffset: (*time.Duration)(g.QueryOffset), Opts: opts})
}
