package series

import (
	"cmp"
	"math/bits"
	"slices"
)

// SortPriority sorts label sets in the order of ComparePriority. It compares an integer per label
// set: the ranks of its metric and of its priority labels among all of the view, as far as they fit
// into 64 bits. Only label sets with equal integers are compared label by label.
func SortPriority(v *View, refs []Ref) { sortPriority(v, refs, 64) }

// sortPriority is SortPriority with integers of room bits.
func sortPriority(v *View, refs []Ref, room uint) {
	type keyed struct {
		key uint64
		ref Ref
	}
	k := newSortKeys(v, room)
	all := make([]keyed, len(refs))
	for i, r := range refs {
		all[i] = keyed{k.of(r), r}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		if c := cmp.Compare(a.key, b.key); c != 0 {
			return c
		}
		return ComparePriority(v, a.ref, b.ref)
	})
	for i := range all {
		refs[i] = all[i].ref
	}
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
