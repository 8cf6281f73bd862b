package exec

import "sync"

// slabValues are the numbers of values of the kinds of slabs, ascending.
var slabValues = [...]int{2 << 10, 16 << 10, 64 << 10}

// slabs are slabs that nobody uses, by kind.
var slabs [len(slabValues)]sync.Pool

// slab is memory for the values of series at the steps.
type slab struct {
	kind   int
	values []float64
}

// room is memory for values, of undefined content.
type room struct {
	slabs []*slab
	rest  []float64 // of the last one
}

// keptSlabs is how many slabs of one query are kept for others. A large query has more: they would
// stay in memory while nobody needs so many.
const keptSlabs = 16

// release lets others have the memory.
func (r *room) release() {
	for _, s := range r.slabs[:min(len(r.slabs), keptSlabs)] {
		slabs[s.kind].Put(s)
	}
	*r = room{}
}

// next returns memory for n values, which take keeps. more bounds the values that will be needed,
// these included.
func (r *room) next(n, more int) []float64 {
	if n > len(r.rest) {
		kind := 0
		for kind < len(slabValues)-1 && slabValues[kind] < more {
			kind++
		}
		if n > slabValues[kind] {
			r.rest = make([]float64, more)
			return r.rest[:n:n]
		}
		s, ok := slabs[kind].Get().(*slab)
		if !ok {
			s = &slab{kind, make([]float64, slabValues[kind])}
		}
		r.slabs, r.rest = append(r.slabs, s), s.values
	}
	return r.rest[:n:n]
}

// keep makes the first n values that next returned the caller's.
func (r *room) keep(n int) { r.rest = r.rest[n:] }

// take returns memory for n values, which is the caller's.
func (r *room) take(n int) []float64 {
	out := r.next(n, n)
	r.keep(n)
	return out
}
