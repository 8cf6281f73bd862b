package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/source"
)

// Input is a planned read of the samples of a selector, or of a leaf.
type Input struct {
	Res     *lookup.Resolution
	wanted  []int                // positions in res
	mint    int64                // ms; samples that are shown, while Whole has more of replicas
	maxt    int64                // ms
	Whole   *samples.Collector   // of wanted; nil: the series have their samples
	Rolled  *samples.Rollups     // nil: samples are read everywhere
	Taken   [][]lookup.Row       // by object: of which rollups are read
	Files   []source.Parts       // parts of blocks' files, once they are planned
	took    request.Totals       // by files
	edges   []*samples.Collector // likewise as Whole, of the samples beside rollups
	planned bool                 // Files are
	opened  bool                 // rollups are
	Rollups []source.Parts       // parts of them
}

// Wanted returns the resolution of a leaf's selector, and the positions of the leaf's series in it,
// which ascend.
func (p *Attempt) Wanted(l *plan.Leaf) (res *lookup.Resolution, wanted []int, err error) {
	res = p.Resolution(l.Selector.Expr)
	if res == nil {
		return nil, nil, fmt.Errorf("plan the read of %s: its series are not known", l)
	}
	wanted = make([]int, len(l.Resolution.Series))
	for i, s := range l.Resolution.Series {
		wanted[i] = int(s.ID)
	}
	return res, wanted, nil
}

// ReadOf returns the planned read of a leaf.
func (p *Attempt) ReadOf(ctx context.Context, l *plan.Leaf) (*Input, error) {
	if r := p.reads[l]; r != nil {
		return r, nil
	}
	res, wanted, err := p.Wanted(l)
	if err != nil {
		return nil, err
	}
	mint, maxt := p.Span.Clip(l.Range())
	out := &Input{Res: res, wanted: wanted, mint: mint, maxt: maxt}
	if res.FromHead {
		return out, nil
	}
	out.Whole = p.Samples.Collect(res.Match(wanted, mint, maxt))
	if out.Rolled = samples.FindRollups(l, res, wanted, mint, maxt); out.Rolled != nil {
		out.edges, out.Taken = out.Rolled.Split(out.Whole, wanted)
	}
	return out, nil
}

// times returns the range (ms) of the samples that are read.
func (s *Input) times() (mint, maxt int64) {
	if s.Whole == nil {
		return s.mint, s.maxt
	}
	return s.Whole.MinT, s.Whole.MaxT
}

// PlanFiles sets Files, once.
func (s *Input) PlanFiles(ctx context.Context) {
	if s.planned || s.Whole == nil {
		return
	}
	s.planned = true
	for _, r := range append([]*samples.Collector{s.Whole}, s.edges...) {
		files, took := r.FloatParts(ctx)
		s.Files = append(s.Files, files...)
		s.took.Add(took)
	}
}

// RawReadOf returns the planned read of a selector whose samples the engine reads.
func (p *Attempt) RawReadOf(ctx context.Context, sel plan.Selector, res *lookup.Resolution) *Input {
	wanted := make([]int, len(res.Series))
	for i := range wanted {
		wanted[i] = i
	}
	mint, maxt := p.Span.Clip(sel.MinT, sel.MaxT)
	out := &Input{Res: res, wanted: wanted, mint: mint, maxt: maxt, Whole: p.Samples.Collect(res.Match(wanted, mint, maxt))}
	out.PlanFiles(ctx)
	if res.HasHists {
		files, took := out.Whole.HistParts(ctx)
		out.Files = append(out.Files, files...)
		out.took.Add(took)
	}
	return out
}

// Open opens the rollups of the read once.
func (s *Input) Open(ctx context.Context) (err error) {
	if s.Rolled != nil && !s.opened {
		s.Rollups, err = s.Rolled.Open(ctx, s.Whole, s.Taken)
		s.opened = err == nil
	}
	return err
}

// prefetch makes the ranges of a read local, all at once if the cache has room for them, and counts
// them. They stay local until release.
func (p *Attempt) prefetch(ctx context.Context, s *Input) (release func() error, err error) {
	s.PlanFiles(ctx)
	p.Metrics.Count(ctx, s.took)
	var all source.Fetch
	all.Add(s.Files)
	if err = s.Open(ctx); err == nil {
		all.Add(s.Rollups)
		err = p.Files.Prefetch(ctx, &all)
	}
	if err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return all.Close, nil
}

// Kept returns the selectors of a query that no pushed subtree reads.
func Kept(pl *plan.Plan, planned *plan.Query) (out []plan.Selector) {
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

// ahead makes the planned ranges of all selectors local at once, so that the query waits for the
// store once. DuckDB opens meanwhile if it will be needed. Ranges that the cache has no room for
// are fetched as they are read. The others stay local until release.
func (p *Attempt) ahead(ctx context.Context, pl *plan.Plan) (release func() error, err error) {
	if p.Files.Local() {
		return func() error { return nil }, nil
	}
	var reads []*Input
	var g errgroup.Group
	for _, s := range pl.Pushed {
		if _, leaf := s.Root.(*plan.Leaf); !leaf {
			g.Go(p.DB.Open)
		}
		for _, l := range s.Leaves {
			reads = append(reads, p.reads[l])
		}
	}
	reads = append(reads, p.raw...)
	var first, rollups source.Fetch
	g.Go(telemetry.Guard(func() error {
		for _, r := range reads {
			first.Add(r.Files)
		}
		return p.Files.Prefetch(ctx, &first)
	}))
	g.Go(telemetry.Guard(func() error {
		if err := p.Files.Each(ctx, len(reads), func(_ context.Context, i int) error { return reads[i].Open(ctx) }); err != nil {
			return err
		}
		for _, r := range reads {
			rollups.Add(r.Rollups)
		}
		return p.Files.Prefetch(ctx, &rollups)
	}))
	release = func() error { return errors.Join(first.Close(), rollups.Close()) }
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}
