package promapp

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/memory"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/rulestore"
	"github.com/promlake/promlake/internal/settings"
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

// TestResultsAreCharged: the series that the groups of a tenant have found count until others
// replace them, or the group is gone. A rule that goes beyond the limit fails.
func TestResultsAreCharged(t *testing.T) {
	e := &evaluating{}
	e.set.Limits = rulestore.Limits{MaxNameBytes: 100, MaxMemoryBytes: 1000}
	tr := &tenantRules{evaluating: e}
	o := &owner{held: 100}
	r := &results{charge: func(n int64) error { return tr.charge(o, n) }, of: map[string]int64{}}
	series := promql.Vector{{Metric: labels.FromStrings("a", "b")}, {Metric: labels.FromStrings("a", "c")}}
	for range 3 {
		ctx, end := r.begin(t.Context(), "g")
		require.NoError(t, r.add(ctx, series))
		require.Error(t, r.add(ctx, series), "it would be 1128 bytes")
		require.NoError(t, r.add(ctx, series[:1]))
		end()
		require.Greater(t, o.found, int64(3*resultBytes))
		require.Equal(t, tr.room.held, o.found)
	}
	ctx, end := r.begin(t.Context(), "h")
	require.ErrorContains(t, r.add(ctx, series), "--ruler.max-memory-per-tenant")
	end()
	r.forget(nil)
	require.Zero(t, o.found)
	require.NoError(t, (*results)(nil).add(t.Context(), series))
}
