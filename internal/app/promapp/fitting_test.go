package promapp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// TestFitting: tenants share the room of the process. Groups beyond it are refused until others give
// some back, and a group that did not change is not parsed again.
func TestFitting(t *testing.T) {
	o := &rules.ManagerOptions{}
	rules.NewManager(o)
	p := parser.NewParser(query.ParserOptions())
	budget := memory.New(1<<20, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, nil)
	e := &evaluating{parser: p, dependencies: dependencies{o.RuleDependencyController, p}, memory: budget}
	e.set.Limits = settings.Default[rulestore.Limits]()
	group := func(name, expr string) rulestore.Group {
		return rulestore.Group{Name: name, Rules: []rulestore.Rule{{Record: "r", Expr: expr}, {Alert: "A", Expr: "r>1"}}}
	}
	doc := func(groups ...rulestore.Group) rulestore.Rules {
		return rulestore.Rules{Namespaces: []rulestore.Namespace{{Name: "n", Groups: groups}}}
	}
	one := doc(group("a", "up")).Bytes()
	tr := &tenantRules{evaluating: e, room: room{limit: 5 * one / 2}}
	a, b := &owner{loader: &tenantLoader{}}, &owner{loader: &tenantLoader{}}
	load := func(o *owner, d rulestore.Rules) refusals {
		groups, refused, bytes, err := tr.fitting(t.Context(), o, d)
		require.NoError(t, err)
		o.loader.groups, o.held = groups, bytes
		return refused
	}
	require.Zero(t, load(a, doc(group("a", "up"))).count)
	require.Equal(t, &analysis{[][]int{nil, {0}}}, a.loader.groups["n"][0].exprs[0].group)
	require.Equal(t, "r > 1", a.loader.groups["n"][0].exprs[1].String())
	refused := load(b, doc(group("a", "x"), group("b", "x"), group("c", "y")))
	require.Equal(t, 2, refused.count)
	require.True(t, refused.full)
	require.Len(t, b.loader.groups["n"], 1)
	shown := refused.shown()
	require.Equal(t, "b", shown[0].Name())
	require.ErrorContains(t, shown[0].Rules()[0].LastError(), "the rule group is not evaluated: bytes of memory of the rule groups of all tenants: ")
	require.ErrorContains(t, shown[0].Rules()[0].LastError(), "--memory-limit")

	was := b.loader.groups["n"][0]
	require.Zero(t, load(a, doc()).count)
	require.NotEqual(t, refused.freed, tr.room.freed, "it is tried again")
	refused = load(b, doc(group("a", "x"), group("b", "x"), group("c", "y")))
	require.Equal(t, 1, refused.count)
	require.Same(t, was, b.loader.groups["n"][0])

	// What a load that fails has taken is given back.
	held := tr.room.held
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, _, err := tr.fitting(ended, b, doc(group("a", "x"), group("z", "z")))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, held, tr.room.held)
	free := 1<<20 - held
	require.NoError(t, budget.TryAcquire(free), "the groups that are loaded are acquired, and no others")
	_, _, _, err = tr.fitting(t.Context(), a, doc(group("a", "x")))
	require.ErrorIs(t, err, memory.ErrMemory)
	require.ErrorIs(t, budget.TryAcquire(1), memory.ErrMemory)
	budget.Release(free)

	// Names and groups of former versions that are beyond a limit of the tenant are left out.
	refused = load(b, doc(group(strings.Repeat("long", 1000), "x"), group("ok", "x")))
	require.Equal(t, 1, refused.count)
	require.False(t, refused.full)
	require.Less(t, len(refused.shown()[0].Name()), 100)
	require.ErrorContains(t, refused.some[0].err, "--ruler.max-name-bytes")
	e.set.Limits.MaxMemoryBytes = one
	refused = load(b, doc(group("a", "x"), group("b", strings.Repeat("x", 100)), group("c", "x")))
	require.Equal(t, 2, refused.count)
	require.False(t, refused.full)
	require.ErrorContains(t, refused.some[0].err, "--ruler.max-memory-per-tenant")
}

// TestResultsAreCharged: what the groups of a tenant have found counts until others replace it, or
// the group is gone: series, and alerts for as long as they are kept. A rule that goes beyond the
// limit fails, and works again once there is room.
func TestResultsAreCharged(t *testing.T) {
	e := &evaluating{}
	e.set.Limits = rulestore.Limits{MaxNameBytes: 100, MaxMemoryBytes: 20_000}
	tr := &tenantRules{evaluating: e}
	o := &owner{held: 100}
	r := &results{charge: func(n int64) error { return tr.charge(o, n) }, of: map[string]int64{}}
	found, round := 0, 0 // series, each time other ones
	opts := &rules.ManagerOptions{
		Context: t.Context(), Logger: slog.New(slog.DiscardHandler), NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Appendable: appender.V1{Appendable: appender.New(func(*appender.Transaction) error { return nil })}, Metrics: rules.NewGroupMetrics(nil), ExternalURL: &url.URL{},
		QueryFunc: func(ctx context.Context, _ string, at time.Time) (v promql.Vector, err error) {
			for i := range found {
				v = append(v, promql.Sample{T: at.UnixMilli(), F: 1, Metric: labels.FromStrings("i", fmt.Sprint(i), "round", fmt.Sprint(round))})
			}
			return v, r.add(ctx, v)
		},
	}
	expr, err := parser.NewParser(query.ParserOptions()).ParseExpr("up")
	require.NoError(t, err)
	recording := rules.NewRecordingRule("r", expr, labels.EmptyLabels())
	alerting := func(keep time.Duration) rules.Rule {
		return rules.NewAlertingRule("A", expr, 0, keep, labels.EmptyLabels(), labels.FromStrings("text", strings.Repeat("x", 100)), labels.EmptyLabels(), "", false, opts.Logger)
	}
	at := time.Unix(1_700_000_000, 0)
	evaluate := func(g *rules.Group) error {
		at, round = at.Add(time.Minute), round+1
		ctx, end := r.begin(t.Context(), g, at)
		g.Eval(ctx, at)
		end()
		require.LessOrEqual(t, o.found+o.held, int64(20_000))
		require.Equal(t, tr.room.held, o.found)
		return g.Rules()[0].LastError()
	}
	group := func(name string, rule rules.Rule) *rules.Group {
		return rules.NewGroup(rules.GroupOptions{Name: name, Interval: time.Minute, Rules: []rules.Rule{rule}, Opts: opts})
	}
	g := group("recording", recording)
	for _, found = range []int{10, 10, 10, 100, 10} {
		err := evaluate(g)
		require.Equal(t, found == 100, err != nil, err)
	}
	require.ErrorContains(t, func() error { found = 100; return evaluate(g) }(), "--ruler.max-memory-per-tenant")
	r.forget(nil)
	require.Zero(t, o.found)

	for _, keep := range []time.Duration{0, 5 * time.Minute} {
		g = group(fmt.Sprint("alerting", keep), alerting(keep))
		found = 3
		rounds := 0
		for evaluate(g) == nil {
			rounds++
			require.Less(t, rounds, 10, "alerts that are gone from the results are kept, and charged")
		}
		require.ErrorContains(t, g.Rules()[0].LastError(), "--ruler.max-memory-per-tenant")
		for rounds = 0; evaluate(g) != nil; rounds++ {
			require.Less(t, rounds, 40, "those that are resolved go")
		}
		found = 0
		for range 40 {
			require.NoError(t, evaluate(g))
		}
		require.Zero(t, o.found)
	}
	require.NoError(t, (*results)(nil).add(t.Context(), promql.Vector{{}}))
}
