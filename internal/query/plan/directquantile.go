package plan

import (
	"cmp"
	"slices"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
)

func (n *quantileNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	phi := n.phi.(*constNode).value
	out := make([]Row, 0, len(n.shape.Labels))
	buckets := make(promql.Buckets, 0, len(in[0]))
	for h, members := range byGroup(in[0], n.to, len(n.shape.Labels)) {
		slices.SortStableFunc(members, func(a, b Row) int { return cmp.Compare(n.les[n.le[a.I]], n.les[n.le[b.I]]) })
		v, some := t.Room(n.shape.Grid.N), false
		for k := range v {
			buckets, v[k] = buckets[:0], absent
			for _, r := range members {
				if f := r.V[k]; !value.IsStaleNaN(f) {
					buckets = append(buckets, promql.Bucket{UpperBound: n.les[n.le[r.I]], Count: f})
				}
			}
			if len(buckets) == 0 {
				continue
			}
			some = true
			var forced bool
			if v[k], forced, _, _, _, _ = promql.BucketQuantile(phi, buckets); forced {
				return nil, ErrForcedMonotonicity
			}
		}
		if some {
			out = append(out, Row{uint32(h), v})
		}
	}
	return out, nil
}
