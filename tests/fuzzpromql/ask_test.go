package fuzzpromql

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
)

// newAsk generates a query that parses, and its times.
func newAsk(seed uint64) ask {
	g := generator{rand.New(rand.NewPCG(seed, 2))}
	a := ask{seed: seed, tenant: layouts[g.IntN(len(layouts))].tenant, way: g.IntN(len(ways))}
	for p := parser.NewParser(query.ParserOptions()); ; {
		a.query = g.query()
		if _, err := p.ParseExpr(a.query); err == nil {
			break
		}
	}
	if g.IntN(6) == 0 {
		a.lookback = []time.Duration{time.Second, 15 * time.Second, time.Minute, 20 * time.Minute}[g.IntN(4)]
	}
	a.start = g.instant()
	a.end = a.start
	if g.IntN(4) > 0 {
		a.step = []int64{15_000, 30_000, 60_000, 60_000, 77_777, 300_000, 1}[g.IntN(7)]
		a.end += a.step*int64(1+g.IntN(40)) + g.Int64N(a.step)
	}
	return a
}

func (w *world) check(ctx context.Context, a ask) (verdict, outcome) {
	expr, err := parser.NewParser(query.ParserOptions()).ParseExpr(a.query)
	if err != nil {
		return verdict{difference: err.Error()}, outcome{}
	}
	st, engine := w.stages[a.way], w.engines[a.way]
	want := run(ctx, engine, w.upstream, a)
	got := run(tenant.With(ctx, a.tenant), st.Engine(), st, a)
	// memory that a failed statement still holds
	if got.limited && !strings.Contains(got.err, "still in use") {
		return verdict{limited: true}, want
	}
	return compare(classOf(expr), got, want, func(noise int) outcome {
		return run(ctx, engine, noisy{w.upstream, a.seed + uint64(noise)<<32}, a)
	}), want
}

// estimated is what a query was estimated to read, and what upstream's engine and Promlake have
// read.
type estimated struct {
	request.Estimate
	upstream int64 // samples
	own      request.Actual
}

// estimate estimates a query that upstream has answered, and runs it again to compare.
func (w *world) estimate(ctx context.Context, a ask, want outcome) (out estimated, err error) {
	st, ctx := w.stages[a.way], tenant.With(ctx, a.tenant)
	out.upstream = want.read
	q := query.Question{Text: a.query, Start: time.UnixMilli(a.start), End: time.UnixMilli(a.end), Step: time.Duration(a.step) * time.Millisecond, Lookback: a.lookback}
	if out.Estimate, err = st.Estimate(ctx, q); err != nil {
		return out, err
	}
	got := run(request.With(ctx, request.Request{Quote: &request.Quote{}}), st.Engine(), st, a)
	if got.compare != nil {
		out.own = got.compare.Actual
	}
	return out, nil
}

// minimal returns the shortest part of a query that fails on its own, with its failure, or the
// whole query.
func (w *world) minimal(ctx context.Context, a ask, d string) (ask, string) {
	expr, err := parser.NewParser(query.ParserOptions()).ParseExpr(a.query)
	if err != nil {
		return a, d
	}
	var parts []string
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if e, ok := n.(parser.Expr); ok && e.Type() != parser.ValueTypeMatrix && e.Type() != parser.ValueTypeString {
			parts = append(parts, e.String())
		}
		return nil
	})
	slices.SortStableFunc(parts, func(a, b string) int { return len(a) - len(b) })
	for _, part := range parts {
		small := a
		small.query = part
		if v, _ := w.check(ctx, small); v.difference != "" {
			return small, v.difference
		}
	}
	return a, d
}
