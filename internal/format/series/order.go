package series

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
	"strings"
)

// Order is the sorted order of a Table's label sets: that of View.Compare, or of ComparePriority if
// it is from NewPriorityOrder. It is updated as the table grows, so that sorting samples by series
// compares integers. It is not safe for concurrent use.
type Order struct {
	priority bool
	sorted   []Ref
	rank     []uint32 // by ref: position in sorted; those from moved on are out of date for refs before old
	old      Ref      // 0: none is out of date
	moved    int
	chosen   []uint64 // of Sort: bits by position
}

// NewPriorityOrder returns an empty order by ComparePriority.
func NewPriorityOrder() *Order { return &Order{priority: true} }

// sort sorts label sets of v.
func (o *Order) sort(v *View, refs []Ref) {
	switch {
	case o.priority:
		SortPriority(v, refs)
	case len(refs) < len(v.Metrics):
		slices.SortFunc(refs, v.Compare)
	default:
		rank := ranks(v.Metrics)
		sortByKey(refs, func(r Ref) uint32 { return rank[v.Metric(r)] }, v.Compare)
	}
}

// sortByKey sorts label sets by their keys, and those with equal keys by compare.
func sortByKey[K cmp.Ordered](refs []Ref, key func(Ref) K, compare func(a, b Ref) int) {
	type keyed struct {
		key K
		ref Ref
	}
	all := make([]keyed, len(refs))
	for i, r := range refs {
		all[i] = keyed{key(r), r}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		if c := cmp.Compare(a.key, b.key); c != 0 {
			return c
		}
		return compare(a.ref, b.ref)
	})
	for i := range all {
		refs[i] = all[i].ref
	}
}

func (o *Order) compare(v *View, a, b Ref) int {
	if o.priority {
		return ComparePriority(v, a, b)
	}
	return v.Compare(a, b)
}

// Extend updates the order to v, a later view of the same table. It takes O(m log n) comparisons
// for m new label sets among n, and moves the integers after the first insertion.
func (o *Order) Extend(v *View) {
	n, total := len(o.sorted), v.Len()
	if n == total {
		return
	}
	fresh := make([]Ref, total-n)
	for i := range fresh {
		fresh[i] = Ref(n + i)
	}
	o.sort(v, fresh)
	o.sorted = slices.Grow(o.sorted, len(fresh))[:total]
	// Merge from the back: every entry after the insertion point of the largest new one moves once.
	o.rank = slices.Grow(o.rank, len(fresh))[:total]
	end, w := n, total
	for i := len(fresh) - 1; i >= 0; i-- {
		at := o.place(v, fresh[i], end)
		w -= end - at
		copy(o.sorted[w:], o.sorted[at:end])
		w--
		o.sorted[w], o.rank[fresh[i]] = fresh[i], uint32(w)
		end = at
	}
	if end < n {
		if o.old == 0 {
			o.moved = end
		}
		o.old, o.moved = Ref(n), min(o.moved, end)
	}
}

// settle brings the ranks up to date. While a tenant's senders send their series for the first
// time, only the ranks of new ones are asked for, which Extend sets.
func (o *Order) settle() {
	for i := o.moved; i < len(o.sorted); i++ {
		o.rank[o.sorted[i]] = uint32(i)
	}
	o.old = 0
}

// place returns where a label set belongs among the first end ones, of which it is none. It
// searches from the end, in steps that grow: series of new hosts mostly lie together.
func (o *Order) place(v *View, r Ref, end int) int {
	after := func(i int) bool { return o.compare(v, o.sorted[i], r) > 0 }
	from, step := end-1, 1
	for from >= 0 && after(from) {
		end = from
		step *= 16
		from = end - step
	}
	from = max(from+1, 0)
	return from + sort.Search(end-from, func(i int) bool { return after(from + i) })
}

// Rank returns the position of a label set in the order.
func (o *Order) Rank(r Ref) uint32 {
	if r < o.old {
		o.settle()
	}
	return o.rank[r]
}

// At returns the label set at a position of the order.
func (o *Order) At(rank uint32) Ref { return o.sorted[rank] }

// Sort sorts distinct label sets, all of which Extend has seen. It takes one pass over the bits of
// all label sets.
func (o *Order) Sort(refs []Ref) {
	o.chosen = append(o.chosen[:0], make([]uint64, (len(o.sorted)+63)/64)...)
	for _, r := range refs {
		at := o.Rank(r)
		o.chosen[at/64] |= 1 << (at % 64)
	}
	n := 0
	for i, w := range o.chosen {
		for ; w != 0; w &= w - 1 {
			refs[n] = o.sorted[64*i+bits.TrailingZeros64(w)]
			n++
		}
	}
}

// Len returns the number of ordered label sets.
func (o *Order) Len() int { return len(o.sorted) }

// SortPriority sorts label sets in the order of ComparePriority. It compares an integer per label
// set: the ranks of its metric and of its priority labels among all of the view, as far as they fit
// into 64 bits. Only label sets with equal integers are compared label by label.
func SortPriority(v *View, refs []Ref) { sortPriority(v, refs, 64) }

// sortPriority is SortPriority with integers of room bits.
func sortPriority(v *View, refs []Ref, room uint) {
	sortByKey(refs, newSortKeys(v, room).of, func(a, b Ref) int { return ComparePriority(v, a, b) })
}

// sortKeys makes the integers of SortPriority.
type sortKeys struct {
	v       *View
	metrics []uint32 // by metric ordinal: rank
	shift   uint     // of the metric's rank
	labels  [len(priorityNames)]sortLabel
}

// sortLabel is the part of a priority label in an integer.
type sortLabel struct {
	ranks []uint32 // by value ordinal: rank plus one; nil if the label does not fit
	shift uint
}

func newSortKeys(v *View, room uint) *sortKeys {
	k := &sortKeys{v: v, metrics: ranks(v.Metrics)}
	var ords [len(priorityNames)]int // name ordinals plus one
	for ord, at := range v.priority {
		if at != 0 {
			ords[at-1] = ord + 1
		}
	}
	k.shift = room - uint(bits.Len(uint(len(v.Metrics))))
	free := k.shift // the bits below
	for i, ord := range ords {
		if ord == 0 {
			continue
		}
		values := v.Values[ord-1]
		width := uint(bits.Len(uint(len(values))))
		if width > free {
			break // the labels behind it do not count in the integer either
		}
		free -= width
		k.labels[i] = sortLabel{ranks(values), free}
	}
	return k
}

// of returns the integer of a label set.
func (k *sortKeys) of(r Ref) uint64 {
	key := uint64(k.metrics[k.v.Metric(r)]) << k.shift
	for _, p := range k.v.Pairs(r) {
		if at := k.v.priority[p.Name]; at != 0 {
			if l := &k.labels[at-1]; l.ranks != nil {
				key |= uint64(l.ranks[p.Value]) << l.shift
			}
		}
	}
	return key
}

// ranks returns the position of each text in the order of texts, from 1 on.
func ranks(texts []string) []uint32 {
	order := make([]uint32, len(texts))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(texts[a], texts[b]) })
	rank := make([]uint32, len(texts))
	for i, o := range order {
		rank[o] = uint32(i + 1)
	}
	return rank
}

// priorityNames are the labels that follow the metric in the order of blocks. Most matchers use
// them, so that matching series are stored together. The list and its order are part of version 1
// of the block format.
var priorityNames = [...]string{"cluster", "namespace", "job", "instance"}

// priority holds the value ordinals plus one of the labels of priorityNames; 0 = absent.
type priority [len(priorityNames)]uint32

func (v *View) priorityValues(pairs []Pair) (vals priority) {
	for _, p := range pairs {
		if at := v.priority[p.Name]; at != 0 {
			vals[at-1] = p.Value + 1
		}
	}
	return vals
}

// ComparePriority orders the series of blocks: by metric, then by the values of the labels cluster,
// namespace, job and instance (bytewise, absent first), then by the other labels in upstream's
// labels.Compare order.
func ComparePriority(v *View, a, b Ref) int {
	if a == b {
		return 0
	}
	if ma, mb := v.Metric(a), v.Metric(b); ma != mb {
		return strings.Compare(v.Metrics[ma], v.Metrics[mb])
	}
	pa, pb := v.Pairs(a), v.Pairs(b)
	for len(pa) > 0 && len(pb) > 0 && pa[0] == pb[0] { // skip equal labels
		pa, pb = pa[1:], pb[1:]
	}
	va, vb := v.priorityValues(pa), v.priorityValues(pb)
	for i := range va {
		if va[i] != vb[i] {
			return strings.Compare(v.priorityText(pa, i), v.priorityText(pb, i))
		}
	}
	return v.compareRest(pa, pb)
}

// priorityText returns the value of the label at an index of priorityNames, or "" if it is absent:
// no label has an empty value.
func (v *View) priorityText(pairs []Pair, at int) string {
	for _, p := range pairs {
		if int(v.priority[p.Name]) == at+1 {
			return v.Values[p.Name][p.Value]
		}
	}
	return ""
}

// compareRest compares label lists as Compare does, but skips the priority labels.
func (v *View) compareRest(a, b []Pair) int {
	for {
		for len(a) > 0 && v.priority[a[0].Name] != 0 {
			a = a[1:]
		}
		for len(b) > 0 && v.priority[b[0].Name] != 0 {
			b = b[1:]
		}
		if len(a) == 0 || len(b) == 0 {
			return len(a) - len(b)
		}
		x, y := a[0], b[0]
		if x.Name != y.Name {
			return strings.Compare(v.Names[x.Name], v.Names[y.Name])
		}
		if x.Value != y.Value {
			return strings.Compare(v.Values[x.Name][x.Value], v.Values[x.Name][y.Value])
		}
		a, b = a[1:], b[1:]
	}
}
