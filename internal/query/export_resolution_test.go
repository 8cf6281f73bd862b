package query

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/store/catalog"
)

// Resolved is a resolution as tests see it.
type Resolved struct {
	Labels        []labels.Labels
	Places        [][][5]int64 // by series: object, row, first, n, hists
	Rows          int64
	Hists, Starts bool
	Objects       int
}

// Resolve resolves a selector.
func (s *Stage) Resolve(ctx context.Context, mint, maxt int64, ms ...*labels.Matcher) (out Resolved, err error) {
	_, err = s.Snapshots.Range(mint, maxt).Read(ctx, func(snap catalog.Snapshot) error {
		m, err := s.Tables.Match(ctx, snap, mint, maxt, ms)
		if err != nil {
			return err
		}
		r := m.Resolution()
		out = Resolved{Rows: r.Samples, Hists: r.HasHists, Starts: r.Starts, Objects: len(r.Objects)}
		for _, x := range r.Series {
			out.Labels = append(out.Labels, x.Labels)
			var at [][5]int64
			for _, p := range x.At {
				first, n := r.Floats(p)
				at = append(at, [5]int64{int64(p.Object), int64(p.Row), first, n, r.Hists(p)})
			}
			out.Places = append(out.Places, at)
		}
		return nil
	})
	return out, err
}
