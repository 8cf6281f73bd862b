package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/source"
)

// sampleRead is a planned read of the samples of a selector, or of a leaf.
type sampleRead struct {
	res     *lookup.Resolution
	wanted  []int              // positions in res
	whole   *samples.Collector // of wanted
	rolled  *samples.Rollups   // nil: samples are read everywhere
	taken   [][]lookup.Row     // by object: of which rollups are read
	files   []source.Parts     // parts of blocks' files
	took    request.Totals     // by files
	opened  bool               // rollups are
	rollups []source.Parts     // parts of them
}

// wanted returns the resolution of a leaf's selector and the positions in it of the series that are left to the leaf, which are some of them, in the
// same order.
func (p *pushing) wanted(l *plan.Leaf) (res *lookup.Resolution, wanted []int, err error) {
	res = p.resolved[l.Selector.Expr]
	if res == nil {
		return nil, nil, fmt.Errorf("plan the read of %s: its series are not known", l)
	}
	wanted = make([]int, 0, len(l.Resolution.Series))
	i := 0
	for _, s := range l.Resolution.Series {
		for i < len(res.Series) && res.Series[i].ID != s.ID {
			i++
		}
		if i == len(res.Series) {
			return nil, nil, fmt.Errorf("plan the read of %s: series %s is not among those of its selector", l, s.Labels)
		}
		wanted = append(wanted, i)
	}
	return res, wanted, nil
}

// readOf returns the planned read of a leaf.
func (p *pushing) readOf(ctx context.Context, l *plan.Leaf) (*sampleRead, error) {
	if r := p.reads[l]; r != nil {
		return r, nil
	}
	res, wanted, err := p.wanted(l)
	if err != nil {
		return nil, err
	}
	mint, maxt := p.span.Clip(l.Range())
	out := &sampleRead{res: res, wanted: wanted, whole: p.samples.Collect(res.Match(wanted, mint, maxt))}
	reads := []*samples.Collector{out.whole}
	if out.rolled = samples.FindRollups(l, res, wanted, mint, maxt); out.rolled != nil {
		var edges []*samples.Collector
		edges, out.taken = out.rolled.Split(out.whole, wanted)
		reads = append(reads, edges...)
	}
	for _, r := range reads {
		files, took := r.FloatParts(ctx)
		out.files = append(out.files, files...)
		out.took.Add(took)
	}
	return out, nil
}

// rawReadOf returns the planned read of a selector whose samples the engine reads.
func (p *pushing) rawReadOf(ctx context.Context, sel plan.Selector) *sampleRead {
	res := p.resolved[sel.Expr]
	wanted := make([]int, len(res.Series))
	for i := range wanted {
		wanted[i] = i
	}
	mint, maxt := p.span.Clip(sel.MinT, sel.MaxT)
	out := &sampleRead{res: res, wanted: wanted, whole: p.samples.Collect(res.Match(wanted, mint, maxt))}
	out.files, out.took = out.whole.FloatParts(ctx)
	if res.Hists {
		files, took := out.whole.HistParts(ctx)
		out.files = append(out.files, files...)
		out.took.Add(took)
	}
	return out
}

// open opens the rollups that are read, if they are not open yet.
func (s *sampleRead) open(ctx context.Context) (err error) {
	if s.rolled != nil && !s.opened {
		s.rollups, err = s.rolled.Open(ctx, s.whole, s.taken)
		s.opened = err == nil
	}
	return err
}

// prefetch makes what the read takes local, all at once if the cache has room for it, and counts it. It stays local until the returned function is called.
func (p *pushing) prefetch(ctx context.Context, s *sampleRead) (release func() error, err error) {
	p.metrics.Count(ctx, s.took)
	var all source.Fetch
	all.Add(s.files)
	if err = s.open(ctx); err == nil {
		all.Add(s.rollups)
		err = p.files.Prefetch(ctx, &all)
	}
	if err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return all.Close, nil
}

// kept returns the selectors of a query that no pushed subtree reads.
func kept(pl *plan.Plan, planned *plan.Query) (out []plan.Selector) {
	pushed := map[*parser.VectorSelector]bool{}
	for _, s := range pl.Pushed {
		for _, l := range s.Leaves {
			pushed[l.Selector.Expr] = true
		}
	}
	for _, sel := range planned.Selectors() {
		if !pushed[sel.Expr] {
			out = append(out, sel)
		}
	}
	return out
}

// planReads plans what a query reads from a remote store.
func (p *pushing) planReads(ctx context.Context, pl *plan.Plan, planned *plan.Query) error {
	if p.files.Local() {
		return nil
	}
	p.reads, p.raw = map[*plan.Leaf]*sampleRead{}, nil
	for _, s := range pl.Pushed {
		for _, l := range s.Leaves {
			r, err := p.readOf(ctx, l)
			if err != nil {
				return err
			}
			p.reads[l] = r
		}
	}
	for _, sel := range kept(pl, planned) {
		p.raw = append(p.raw, p.rawReadOf(ctx, sel))
	}
	return nil
}

// ahead makes local what was planned, for all selectors of a query at once, so that the store is waited for once. DuckDB opens meanwhile, if it will be
// needed. What is more than the cache has room for is left to be fetched bit by bit. It stays local until the returned function is called.
func (p *pushing) ahead(ctx context.Context, pl *plan.Plan) (release func() error, err error) {
	if p.files.Local() {
		return func() error { return nil }, nil
	}
	var reads []*sampleRead
	var g errgroup.Group
	for _, s := range pl.Pushed {
		if _, leaf := s.Root.(*plan.Leaf); !leaf {
			g.Go(p.db.Open)
		}
		for _, l := range s.Leaves {
			reads = append(reads, p.reads[l])
		}
	}
	reads = append(reads, p.raw...)
	var first, rollups source.Fetch
	g.Go(func() error {
		for _, r := range reads {
			first.Add(r.files)
		}
		return p.files.Prefetch(ctx, &first)
	})
	g.Go(func() error {
		if err := p.files.Each(ctx, len(reads), func(_ context.Context, i int) error { return reads[i].open(ctx) }); err != nil {
			return err
		}
		for _, r := range reads {
			rollups.Add(r.rollups)
		}
		return p.files.Prefetch(ctx, &rollups)
	})
	release = func() error { return errors.Join(first.Close(), rollups.Close()) }
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}
