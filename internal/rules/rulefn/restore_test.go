package rulefn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/strutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/tests/support/appendertest"
)

// TestAlertsContinueAsUpstreams: a Prometheus evaluates a group for a while. Then a group without a
// state goes on, after outages of random length. Another Prometheus is the oracle: it evaluates,
// restores and evaluates again, all at the time of our first evaluation. All samples and
// notifications from then on are equal, also if the former one has added external labels to what it
// wrote to the store.
func TestAlertsContinueAsUpstreams(t *testing.T) {
	continued := 0
	for seed := range *stepTimelines {
		continued += continueOne(t, seed)
		if t.Failed() {
			return
		}
	}
	require.Greater(t, continued, int(*stepTimelines)/4, "alerts with a time of the former Prometheus")
}

// restoringOptions returns options with the settings of both.
func restoringOptions(tolerance, grace time.Duration) *rulefn.Options {
	o := &rulefn.Options{
		Parser: parser.NewParser(parser.Options{}), Interval: time.Minute, ResendDelay: stepResend, ExternalURL: link, ExternalLabels: external, MaxSeries: 1000,
		OutageTolerance: tolerance, GracePeriod: grace,
		Link:  func(expr string) string { return link.String() + strutil.TableLinkForExpression(expr) },
		Retry: func(err error) bool { return errors.As(err, new(promql.ErrStorage)) && !errors.Is(err, errDamaged) }, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	o.Prepare()
	return o
}

func continueOne(t *testing.T, seed uint64) (continued int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	interval := []time.Duration{15 * time.Second, time.Minute, 3 * time.Minute}[r.IntN(3)]
	def := randomGroup(r, interval, model.Duration([]time.Duration{0, 45 * time.Second}[r.IntN(2)]))
	tolerance, grace := []time.Duration{10 * time.Minute, time.Hour}[r.IntN(2)], []time.Duration{0, 2 * interval, 10 * time.Minute}[r.IntN(3)]
	for i := range def.Rules {
		// An alert without "for" fires in upstream's first evaluation, then begins with the second
		// again if there is no grace period.
		if def.Rules[i].Alert != "" {
			def.Rules[i].For = model.Duration([]time.Duration{interval, 4 * interval, 20 * time.Minute, time.Hour}[r.IntN(4)])
			if grace > 0 && r.IntN(5) == 0 {
				def.Rules[i].For = 0
			}
		}
	}
	data := &timeline{r: r, on: map[string]bool{}, values: map[string]float64{}}

	past, written := ruleeval.NewMemory(math.MaxInt64, ""), ruleeval.NewMemory(math.MaxInt64, "")
	sent := r.IntN(2) == 0 // by remote_write, with external labels
	add := func(tx *appender.Transaction) error {
		there := &appender.Transaction{Samples: slices.Clone(tx.Samples)}
		for i := range there.Samples {
			if sent {
				x := &there.Samples[i]
				*x = appendertest.Sample(labels.NewBuilder(x.Labels()).Set("cluster", external.Get("cluster")).Labels(), x.T, x.V)
			}
		}
		return errors.Join(past.Add(tx), written.Add(there))
	}
	var want, got record
	options := func(to storage.Appendable) *rules.ManagerOptions {
		return &rules.ManagerOptions{
			QueryFunc: data.query, NotifyFunc: rules.SendAlerts(&want, link.String()), ExternalURL: link, Appendable: to, Queryable: past, Context: t.Context(),
			ResendDelay: stepResend, OutageTolerance: tolerance, ForGracePeriod: grace, Logger: slog.New(slog.DiscardHandler), Metrics: rules.NewGroupMetrics(nil),
		}
	}
	former := stepUpstream(t, def, options(appender.V1{Appendable: appender.New(add)}))
	at := former.EvalTimestamp(time.Unix(1_700_000_000, 123).UnixNano())
	for range 10 + r.IntN(30) {
		data.advance(at)
		former.Eval(t.Context(), at)
		at = at.Add(interval)
	}
	at = at.Add([]time.Duration{0, interval, 10 * interval, 30 * time.Minute, 2 * time.Hour}[r.IntN(5)])
	want.take()

	nobody := appender.V1{Appendable: appender.New(func(*appender.Transaction) error { return nil })}
	opts := options(nobody)
	next := stepUpstream(t, def, opts)
	for _, rule := range next.AlertingRules() {
		rule.SetRestored(false)
	}
	data.advance(at)
	next.Eval(t.Context(), at)
	next.RestoreForState(at)
	opts.Appendable = appender.V1{Appendable: appender.New(want.add)}

	group, err := rulefn.Compile(restoringOptions(tolerance, grace), namespace, def)
	require.NoError(t, err)
	state, ours := &rulestate.Group{}, appender.V1{Appendable: appender.New(got.add)}
	for step := range 25 {
		if step > 0 {
			at = at.Add(interval)
			data.advance(at)
		}
		next.Eval(t.Context(), at)
		after, res, err := group.Eval(t.Context(), state, at, rulefn.Data{Query: data.query, Past: written, To: ours})
		require.NoError(t, err)
		for _, n := range res.Notifications {
			got.Send(&notifier.Alert{Labels: n.Labels, Annotations: n.Annotations, StartsAt: n.StartsAt, EndsAt: n.EndsAt, GeneratorURL: n.GeneratorURL})
		}
		require.Equal(t, want.take(), got.take(), "timeline %d, step %d", seed, step)
		if step == 0 {
			for _, rule := range after.Rules {
				for _, a := range rule.Alerts {
					if a.ActiveAt.Before(at) {
						continued++
					}
				}
			}
		}
		body, err := rulestate.Encode(after)
		require.NoError(t, err)
		state, err = rulestate.Decode(body)
		require.NoError(t, err)
	}
	return continued
}

var errDamaged = errors.New("damaged")

// unreadable is a past whose reads fail: of a querier, at once, or after some series.
type unreadable struct {
	storage.LabelQuerier

	err  error
	when string
}

// Querier implements storage.Queryable.
func (u unreadable) Querier(_, _ int64) (storage.Querier, error) {
	if u.when == "querier" {
		return nil, u.err
	}
	return u, nil
}

// Select implements storage.Querier.
func (u unreadable) Select(context.Context, bool, *storage.SelectHints, ...*labels.Matcher) storage.SeriesSet {
	if u.when == "series" {
		return &lateError{err: u.err}
	}
	return storage.ErrSeriesSet(u.err)
}

// Close implements storage.Querier.
func (unreadable) Close() error { return nil }

// lateError has its error only when its end was reached.
type lateError struct {
	storage.SeriesSet

	err  error
	done bool
}

func (l *lateError) Next() bool { l.done = true; return false }

func (l *lateError) Err() error {
	if !l.done {
		return nil
	}
	return l.err
}

// TestUnreadablePast: the first evaluation is repeated if the past cannot be read for a reason that
// passes. For another one the alerts begin now, as upstream has it. The past is read only for rules
// whose alerts may continue, and by no later evaluation.
func TestUnreadablePast(t *testing.T) {
	at, away := time.Unix(60, 0).UTC(), errors.New("away")
	eval := func(hold time.Duration, before *rulestate.Group, past storage.Queryable, found bool) (*rulestate.Group, error) {
		g, err := rulefn.Compile(restoringOptions(time.Hour, 10*time.Minute), "n", rulestore.Group{Name: "g", Rules: []rulestore.Rule{{Alert: "A", Expr: "x", For: model.Duration(hold)}}})
		require.NoError(t, err)
		state, _, err := g.Eval(t.Context(), before, at, rulefn.Data{
			Query: func(context.Context, string, time.Time) (v promql.Vector, err error) {
				if found {
					v = promql.Vector{{Metric: labels.EmptyLabels(), F: 1}}
				}
				return v, nil
			},
			Past: past, To: appender.V1{Appendable: appender.New(func(*appender.Transaction) error { return nil })},
		})
		return state, err
	}
	for _, when := range []string{"querier", "select", "series"} {
		t.Run(when, func(t *testing.T) {
			past := unreadable{err: fmt.Errorf("read: %w", away), when: when}
			_, err := eval(time.Hour, &rulestate.Group{}, past, true)
			require.ErrorIs(t, err, away)
			require.ErrorContains(t, err, `evaluate rule 1, "A", of group "g" of namespace "n"`)
			state, err := eval(time.Hour, &rulestate.Group{}, unreadable{err: errDamaged, when: when}, true)
			require.NoError(t, err)
			require.Equal(t, []time.Time{at}, activeAt(state))
			for name, evaluation := range map[string]func() (*rulestate.Group, error){
				"short for":        func() (*rulestate.Group, error) { return eval(10*time.Minute-1, &rulestate.Group{}, past, true) },
				"no for":           func() (*rulestate.Group, error) { return eval(0, &rulestate.Group{}, past, true) },
				"no alerts":        func() (*rulestate.Group, error) { return eval(time.Hour, &rulestate.Group{}, past, false) },
				"later evaluation": func() (*rulestate.Group, error) { return eval(time.Hour, state, past, true) },
				"no past":          func() (*rulestate.Group, error) { return eval(time.Hour, &rulestate.Group{}, nil, true) },
			} {
				_, err := evaluation()
				require.NoError(t, err, name)
			}
		})
	}
}

func activeAt(g *rulestate.Group) (out []time.Time) {
	for _, r := range g.Rules {
		for _, a := range r.Alerts {
			out = append(out, a.ActiveAt)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}
