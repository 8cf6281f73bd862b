package query

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/catalog"
)

// Resolved is a resolution as tests see it.
type Resolved struct {
	Labels                  []labels.Labels
	IDs                     []uint64
	Places                  [][][5]int64 // by series: object, row, first, n, hists
	Rows                    int64
	IDsAgree, Hists, Starts bool
	Objects                 int
}

// Resolve resolves a selector.
func (s *Stage) Resolve(ctx context.Context, mint, maxt int64, ms ...*labels.Matcher) (out Resolved, err error) {
	q := s.newQuerier(mint, maxt)
	_, err = q.Read(ctx, func(snap catalog.Snapshot) error {
		r, err := q.resolve(ctx, snap, mint, maxt, ms)
		if err != nil {
			return err
		}
		out = Resolved{Rows: r.rows, IDsAgree: r.idsAgree, Hists: r.hists, Starts: r.starts, Objects: len(r.objs)}
		for _, x := range r.series {
			out.Labels, out.IDs = append(out.Labels, x.labels), append(out.IDs, x.id)
			var at [][5]int64
			for _, p := range x.at {
				at = append(at, [5]int64{int64(p.object), p.row, p.first, p.n, p.hists})
			}
			out.Places = append(out.Places, at)
		}
		return nil
	})
	return out, err
}
