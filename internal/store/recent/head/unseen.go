package head

// unseen has the samples of a segment that a head does not have yet. Its other rows are empty.
type unseen struct {
	Segment
	ends []int
	t    []int64
	v    []float64
}

func (n *unseen) End(row int) int   { return n.ends[row] }
func (n *unseen) Single() bool      { return false }
func (n *unseen) Time(i int) int64  { return n.t[i] }
func (n *unseen) Values() []float64 { return n.v }

// Floats implements Segment: there is more than these samples.
func (n *unseen) Floats() bool { return false }

// unseen returns the samples of a segment without those that the head has already: a sender that
// got no answer sends them once more. It returns nil if others are not later than all that the head
// has had of their series. The caller holds h.mu.
func (h *Head) unseen(s Segment) Segment {
	if h.ascending(s) {
		return s
	}
	out := &unseen{Segment: s, ends: make([]int, len(s.Refs()))}
	from, values := 0, s.Values()
	for row, ref := range s.Refs() {
		x := h.chain(ref)
		last := h.nodes.last(x)
		for end := s.End(row); from < end; from++ {
			t, v := s.Time(from), values[from]
			switch {
			case t > last:
				out.t, out.v, last = append(out.t, t), append(out.v, v), t
			case !h.nodes.has(x, t, v):
				return nil
			}
		}
		out.ends[row] = len(out.t)
	}
	return out
}
