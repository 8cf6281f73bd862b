package series

import (
	"slices"
	"sort"
)

// Order is the sorted order of a Table's label sets (View.Compare). It is updated as the table
// grows, so that sorting samples by series compares integers. It is not safe for concurrent use.
type Order struct {
	sorted []Ref
	rank   []uint32 // by ref: position in sorted
}

// Extend updates the order to v, a later view of the same table. It takes O(m log n) comparisons
// for m new label sets among n, and one pass over the integers after the first insertion.
func (o *Order) Extend(v *View) {
	n, total := len(o.sorted), v.Len()
	if n == total {
		return
	}
	fresh := make([]Ref, total-n)
	for i := range fresh {
		fresh[i] = Ref(n + i)
	}
	slices.SortFunc(fresh, v.Compare)
	o.sorted = slices.Grow(o.sorted, len(fresh))[:total]
	// Merge from the back: every entry after the insertion point of the largest new one moves once.
	end, w := n, total
	for i := len(fresh) - 1; i >= 0; i-- {
		at := sort.Search(end, func(j int) bool { return v.Compare(o.sorted[j], fresh[i]) > 0 })
		w -= end - at
		copy(o.sorted[w:], o.sorted[at:end])
		w--
		o.sorted[w] = fresh[i]
		end = at
	}
	o.rank = slices.Grow(o.rank, len(fresh))[:total]
	for i := end; i < total; i++ {
		o.rank[o.sorted[i]] = uint32(i)
	}
}

// Rank returns the position of a label set in the order.
func (o *Order) Rank(r Ref) uint32 { return o.rank[r] }

// At returns the label set at a position of the order.
func (o *Order) At(rank uint32) Ref { return o.sorted[rank] }

// Len returns the number of ordered label sets.
func (o *Order) Len() int { return len(o.sorted) }
