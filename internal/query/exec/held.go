package exec

import (
	"context"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
)

// held are the samples of series that have them, one series after the other.
type held struct {
	mint, maxt int64   // ms
	last       []int64 // times of the last series
	n          int     // samples so far
}

// of returns the samples of a series, none if it has none, and what the kernel may assume of them
// if its last series was that of the last call.
func (x *held) of(s *lookup.ResolvedSeries) (t []int64, v []float64, facts promsql.Facts) {
	if t, v = s.Head.Between(x.mint, x.maxt); len(t) == 0 {
		return nil, nil, 0
	}
	if !s.Head.Stale {
		facts |= promsql.NoStale
	}
	if len(t) == len(x.last) && &t[0] == &x.last[0] { // neighbours share equal times
		facts |= promsql.SameTimes
	}
	x.last = t
	x.n += len(t)
	return t, v, facts
}

// few is Leaf for a leaf of a few series that have their samples.
func (r *Run) few(ctx context.Context, l *plan.Leaf) (*Values, error) {
	res, all, err := r.Wanted(l)
	if err != nil {
		return nil, err
	}
	kernel, err := r.kernel(l, l.Func)
	if err != nil {
		return nil, err
	}
	defer kernel.Close()
	out := &Values{I: make([]uint32, 0, len(all)), v: make([][]float64, 0, len(all)), quoted: quoted{request.From(ctx).Quote, l}}
	var x held
	x.mint, x.maxt = r.Span.Clip(l.Range())
	for i, at := range all {
		if t, v, facts := x.of(&res.Series[at]); len(t) > 0 {
			if err := out.eval(kernel, uint32(i), t, v, facts, len(all)-i); err != nil {
				return nil, err
			}
		}
	}
	r.Metrics.Samples.Add(float64(x.n))
	out.present, out.Samples = out.I, int64(x.n)
	return out, nil
}
