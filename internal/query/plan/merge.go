package plan

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// Merge combines the rows of the parts of a subtree into the rows of the whole, in the order of I.
// parts has one element per part. It returns false if the parts do not determine the result: then
// the whole subtree must run as one. It may change the rows.
type Merge func(parts [][]vector.Row, m vector.Memory) ([]vector.Row, bool, error)

// merger translates ordinals of parts into ordinals of the whole.
type merger struct {
	maps [][]uint32 // by part and its ordinal
	cuts []span     // of ranks
	rank []uint32   // by ordinal of the whole
}

// rows concatenates the rows of parts, of which each computes its own span of the whole.
func (m *merger) rows(parts [][]vector.Row, _ vector.Memory) ([]vector.Row, bool, error) {
	var out []vector.Row
	for k, rows := range parts {
		for _, r := range rows {
			// Series that come from no leaf are in all parts; only one part's span contains them.
			i := m.maps[k][r.I]
			if i != vector.NoOrdinal && m.rank[i] >= m.cuts[k].from && m.rank[i] < m.cuts[k].to {
				out = append(out, vector.Row{I: i, V: r.V})
			}
		}
	}
	vector.Sort(out)
	return out, true, nil
}

// mergeable reports whether an aggregate can be computed from aggregates of parts.
func mergeable(op string) bool {
	return slices.Contains([]string{"sum", "avg", "min", "max", "count", "group"}, op)
}

// aggregates returns the Merge for parts that each aggregate some of the input.
func (m *merger) aggregates(op string) Merge {
	if op == "avg" {
		return m.averages
	}
	return func(parts [][]vector.Row, memory vector.Memory) ([]vector.Row, bool, error) {
		var all []vector.Row
		for k, rows := range parts {
			for _, r := range rows {
				all = append(all, vector.Row{I: m.maps[k][r.I], V: r.V})
			}
		}
		out, err := vector.Merge(op, all, memory)
		return out, true, err
	}
}

// averages merges the rows of averageNode. It fails if a sum is infinite: the sum may have
// overflowed where upstream's average does not.
func (m *merger) averages(parts [][]vector.Row, memory vector.Memory) ([]vector.Row, bool, error) {
	var all [2][]vector.Row // sums and counts
	for k, rows := range parts {
		for _, r := range rows {
			all[r.I%2] = append(all[r.I%2], vector.Row{I: m.maps[k][r.I/2], V: r.V})
		}
	}
	sums, err := vector.Merge("sum", all[0], memory)
	if err != nil {
		return nil, false, err
	}
	counts, err := vector.Merge("count", all[1], memory)
	if err != nil {
		return nil, false, err
	}
	for k := range sums {
		n := counts[k].V
		for j, s := range sums[k].V {
			if math.IsInf(s, 0) {
				return nil, false, nil
			}
			if !value.IsStaleNaN(s) {
				sums[k].V[j] = s / n[min(j, len(n)-1)]
			}
		}
	}
	return sums, true, nil
}

// averageNode returns the inputs of an average: the sum of group g as row 2g and the count as row
// 2g+1.
type averageNode struct{ groupNode }

func (n *averageNode) sql(b *builder) string {
	part := func(fn string, odd uint32) string {
		to := make([]uint32, len(n.to))
		for i, o := range n.to {
			to[i] = 2*o + odd
		}
		return b.byGroup(to, func(*builder) string { return fn + "(v)" }, n.in)
	}
	return part("prom_sum", 0) + " UNION ALL " + part("prom_count", 1)
}
