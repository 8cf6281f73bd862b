package plan

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/util/kahansum"

	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

// Row is a row of a statement's result: the values of the series with ordinal I. A stale marker
// means no value.
type Row struct {
	I uint32
	V []float64
}

// Merge combines the rows of the parts of a subtree into the rows of the whole, in the order of I.
// parts has one element per part. It returns false if the parts do not determine the result: then
// the whole subtree must run as one. It may change the rows' values.
type Merge func(parts [][]Row) ([]Row, bool)

// merger translates ordinals of parts into ordinals of the whole.
type merger struct {
	index map[string]uint32
	maps  [][]uint32 // by part and its ordinal
	cuts  []span     // of ranks
	rank  []uint32   // by ordinal of the whole
}

func (m *merger) mapping(ls []labels.Labels) []uint32 {
	out := make([]uint32, len(ls))
	var key []byte
	for i, l := range ls {
		key = l.Bytes(key)
		o, ok := m.index[string(key)]
		if !ok {
			o = ordinals.None
		}
		out[i] = o
	}
	return out
}

// rows concatenates the rows of parts, of which each computes its own span of the whole.
func (m *merger) rows(parts [][]Row) ([]Row, bool) {
	var out []Row
	for k, rows := range parts {
		for _, r := range rows {
			// Series that come from no leaf are in all parts; only one part's span contains them.
			i := m.maps[k][r.I]
			if i != ordinals.None && m.rank[i] >= m.cuts[k].from && m.rank[i] < m.cuts[k].to {
				out = append(out, Row{i, r.V})
			}
		}
	}
	sortRows(out)
	return out, true
}

func sortRows(rows []Row) {
	slices.SortFunc(rows, func(a, b Row) int { return int(int64(a.I) - int64(b.I)) })
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
	return func(parts [][]Row) ([]Row, bool) {
		acc := map[uint32]*folding{}
		for k, rows := range parts {
			for _, r := range rows {
				foldInto(acc, m.maps[k][r.I], r.V, op)
			}
		}
		return finish(acc), true
	}
}

// averages merges the rows of averageNode. It fails if a sum is infinite: the sum may have
// overflowed where upstream's average does not.
func (m *merger) averages(parts [][]Row) ([]Row, bool) {
	sums, counts := map[uint32]*folding{}, map[uint32]*folding{}
	for k, rows := range parts {
		for _, r := range rows {
			acc := sums
			if r.I%2 == 1 {
				acc = counts
			}
			foldInto(acc, m.maps[k][r.I/2], r.V, "sum")
		}
	}
	out, ns := finish(sums), finish(counts)
	for k := range out {
		for j, s := range out[k].V {
			if math.IsInf(s, 0) {
				return nil, false
			}
			if !value.IsStaleNaN(s) {
				out[k].V[j] = s / at(ns[k].V, j)
			}
		}
	}
	return out, true
}

// at returns the value of a list at a step. A list of one element holds at all steps.
func at(v []float64, step int) float64 {
	if len(v) == 1 {
		return v[0]
	}
	return v[step]
}

// folding is the aggregate of a group so far, with the compensation of its sum.
type folding struct{ v, c []float64 }

// foldInto adds the list v of a part to its group i.
func foldInto(acc map[uint32]*folding, i uint32, v []float64, op string) {
	f, ok := acc[i]
	if !ok {
		acc[i] = &folding{v, make([]float64, len(v))}
		return
	}
	if n := len(v); len(f.v) == 1 && n > 1 {
		f.v, f.c = slices.Repeat(f.v, n), slices.Repeat(f.c, n)
	}
	for j := range f.v {
		switch x := at(v, j); {
		case value.IsStaleNaN(x):
		case value.IsStaleNaN(f.v[j]):
			f.v[j] = x
		default:
			f.v[j], f.c[j] = combine(op, f.v[j], x, f.c[j])
		}
	}
}

// combine aggregates two values as upstream's aggregation does. c is the compensation of a sum.
func combine(op string, a, b, c float64) (float64, float64) {
	switch op {
	case "sum", "count":
		return kahansum.Inc(b, a, c)
	case "min":
		if b < a || math.IsNaN(a) {
			return b, 0
		}
	case "max":
		if b > a || math.IsNaN(a) {
			return b, 0
		}
	}
	return a, 0
}

func finish(acc map[uint32]*folding) []Row {
	out := make([]Row, 0, len(acc))
	for i, f := range acc {
		for j, c := range f.c {
			if !value.IsStaleNaN(f.v[j]) {
				f.v[j] += c
			}
		}
		out = append(out, Row{i, f.v})
	}
	sortRows(out)
	return out
}

// averageNode returns the inputs of an average: the sum of group g as row 2g and the count as row
// 2g+1.
type averageNode struct{ groupNode }

func newAverage(g *groupNode) *averageNode {
	n := &averageNode{*g}
	n.shape = Shape{Grid: g.shape.Grid}
	for _, l := range g.shape.Labels {
		n.shape.Labels = append(n.shape.Labels, l, l)
	}
	return n
}

// String implements Node.
func (n *averageNode) String() string { return "sum and count of " + n.groupNode.String() }

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
