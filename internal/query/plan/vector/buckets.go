package vector

import (
	"cmp"
	"slices"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
)

// Histograms are the classic histograms of series that are their buckets.
type Histograms struct {
	Bounds []float64 // the distinct upper bounds
	Bound  []uint32  // the index in Bounds of each ordinal
	To     []uint32  // the histogram of each ordinal
}

// Quantile returns histogram_quantile of each histogram that has a value. It returns false if the
// buckets of one are not monotonic at some step, so that upstream would annotate the answer.
func (h *Histograms) Quantile(phi float64, rows []Row, room Room) ([]Row, bool) {
	var out []Row
	buckets := make(promql.Buckets, 0, len(rows))
	for to, members := range byGroup(rows, h.To) {
		if len(members) == 0 {
			continue
		}
		slices.SortStableFunc(members, func(a, b Row) int { return cmp.Compare(h.bound(a), h.bound(b)) })
		v, some := room(len(members[0].V)), false
		for k := range v {
			buckets, v[k] = buckets[:0], Absent
			for _, r := range members {
				if f := r.V[k]; !value.IsStaleNaN(f) {
					buckets = append(buckets, promql.Bucket{UpperBound: h.bound(r), Count: f})
				}
			}
			if len(buckets) == 0 {
				continue
			}
			some = true
			var forced bool
			if v[k], forced, _, _, _, _ = promql.BucketQuantile(phi, buckets); forced {
				return nil, false
			}
		}
		if some {
			out = append(out, Row{uint32(to), v})
		}
	}
	return out, true
}

func (h *Histograms) bound(r Row) float64 { return h.Bounds[h.Bound[r.I]] }
