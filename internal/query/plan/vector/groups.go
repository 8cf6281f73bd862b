package vector

import "github.com/promlake/promlake/internal/query/duck/promsql"

// Aggregate returns an aggregation, named as in PromQL, of each group that has a value. to has the
// group of each ordinal.
func Aggregate(op string, rows []Row, to []uint32, m Memory) ([]Row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	n, steps := groups(rows, to), len(rows[0].V)
	f, err := promsql.NewFold(op, n, steps, m.Budget)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	has := make([]bool, n)
	for _, r := range rows {
		if err := f.Add(to[r.I], r.V); err != nil {
			return nil, err
		}
		has[to[r.I]] = true
	}
	var out []Row
	for g := range has {
		if !has[g] {
			continue
		}
		v := m.Room(steps)
		present, err := f.Result(uint32(g), v)
		if err != nil {
			return nil, err
		}
		if present {
			out = append(out, Row{uint32(g), v})
		}
	}
	return out, nil
}

// Whole returns an aggregation ("absent" or "scalar") of all rows, which has values without rows, too,
// at n steps. It reports whether it has any.
func Whole(op string, rows []Row, n int, m Memory) (out []float64, present bool, err error) {
	f, err := promsql.NewFold(op, 1, n, m.Budget)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for _, r := range rows {
		if err := f.Add(0, r.V); err != nil {
			return nil, false, err
		}
	}
	out = m.Room(n)
	present, err = f.Result(0, out)
	return out, present, err
}

// groups returns the number of groups up to the last one that a row is in.
func groups(rows []Row, to []uint32) (n int) {
	for _, r := range rows {
		n = max(n, int(to[r.I])+1)
	}
	return n
}

// byGroup returns the rows of each group, in their order. to has the group of each ordinal.
func byGroup(rows []Row, to []uint32) [][]Row {
	counts := make([]int, groups(rows, to))
	for _, r := range rows {
		counts[to[r.I]]++
	}
	out, all := make([][]Row, len(counts)), make([]Row, len(rows))
	for g, c := range counts {
		out[g], all = all[:0:c], all[c:]
	}
	for _, r := range rows {
		out[to[r.I]] = append(out[to[r.I]], r)
	}
	return out
}

// listsOf returns the lists of the rows of a group. bound, which may be nil, is the upper bound of a
// row that is a bucket.
func listsOf(members []Row, bound func(Row) float64, m Memory) (*promsql.Lists, error) {
	lists, bounds := make([][]float64, len(members)), []float64(nil)
	for i, r := range members {
		if lists[i] = r.V; bound != nil {
			bounds = append(bounds, bound(r))
		}
	}
	return promsql.NewLists(lists, bounds, m.Budget)
}

// ofGroups computes one row for each group: compute fills it from the group's lists, or reports
// that the group has no value. to has the group of each ordinal, and bound is as in listsOf.
func ofGroups(rows []Row, to []uint32, bound func(Row) float64, m Memory, compute func(l *promsql.Lists, out []float64) (present bool, err error)) (out []Row, err error) {
	for g, members := range byGroup(rows, to) {
		if len(members) == 0 {
			continue
		}
		l, err := listsOf(members, bound, m)
		if err != nil {
			return nil, err
		}
		v := m.Room(len(members[0].V))
		present, err := compute(l, v)
		l.Close()
		if err != nil {
			return nil, err
		}
		if present {
			out = append(out, Row{uint32(g), v})
		}
	}
	return out, nil
}

// Quantile returns the quantile phi of each group that has a value. to has the group of each
// ordinal.
func Quantile(phi float64, rows []Row, to []uint32, m Memory) ([]Row, error) {
	return ofGroups(rows, to, nil, m, func(l *promsql.Lists, out []float64) (bool, error) { return l.Quantile(phi, out) })
}

// Top returns the values that topk, bottomk or limitk chooses: k of each group at each step. to has
// the group of each ordinal.
func Top(op string, k int64, rows []Row, to []uint32, m Memory) (out []Row, err error) {
	for _, members := range byGroup(rows, to) {
		if int64(len(members)) <= k {
			out = append(out, members...)
			continue
		}
		l, err := listsOf(members, nil, m)
		if err != nil {
			return nil, err
		}
		err = l.Choose(op, k, m.Room, func(i int, v []float64) { out = append(out, Row{members[i].I, v}) })
		l.Close()
		if err != nil {
			return nil, err
		}
	}
	Sort(out)
	return out, nil
}

// Histograms are the classic histograms of series that are their buckets.
type Histograms struct {
	Bounds []float64 // the distinct upper bounds
	Bound  []uint32  // the index in Bounds of each ordinal
	To     []uint32  // the histogram of each ordinal
}

// Quantile returns histogram_quantile of each histogram that has a value. forced means that the
// buckets of one are not monotonic at some step, so that upstream would annotate the answer.
func (h *Histograms) Quantile(phi float64, rows []Row, m Memory) (out []Row, forced bool, err error) {
	bound := func(r Row) float64 { return h.Bounds[h.Bound[r.I]] }
	out, err = ofGroups(rows, h.To, bound, m, func(l *promsql.Lists, v []float64) (bool, error) {
		present, changed, err := l.HistogramQuantile(phi, v)
		forced = forced || changed
		return present, err
	})
	return out, forced, err
}

// Merge aggregates the aggregates of parts, whose groups have the same ordinals in all of them. A
// list of one value holds at all steps. It may change the rows.
func Merge(op string, rows []Row, m Memory) ([]Row, error) {
	if op == "count" { // those of parts add up
		op = "sum"
	}
	steps, n := 0, uint32(0)
	for _, r := range rows {
		steps, n = max(steps, len(r.V)), max(n, r.I+1)
	}
	same := make([]uint32, n)
	for i := range same {
		same[i] = uint32(i)
	}
	for i := range rows {
		if r := &rows[i]; len(r.V) < steps {
			r.V = m.Room.Fill(steps, r.V[0])
		}
	}
	return Aggregate(op, rows, same, m)
}
