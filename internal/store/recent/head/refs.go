package head

import (
	"iter"
	"sort"

	"github.com/promlake/promlake/internal/format/series"
)

// refs are the refs of some series, ascending. Neighbours, as those of a target, are the first one
// and the last one of them, which has throughBit.
type refs []series.Ref

const throughBit = 1 << 31

// add adds a ref after all others.
func (x refs) add(ref series.Ref) refs {
	if n := len(x); n > 0 && x[n-1]&^throughBit+1 == ref {
		if x[n-1]&throughBit != 0 {
			x[n-1] = ref | throughBit
			return x
		}
		ref |= throughBit
	}
	return append(x, ref)
}

// runs yields the first and the last one of neighbours, without those before from.
func (x refs) runs(from series.Ref) iter.Seq2[series.Ref, series.Ref] {
	return func(yield func(series.Ref, series.Ref) bool) {
		for i := sort.Search(len(x), func(i int) bool { return x[i]&^throughBit >= from }); i < len(x); i++ {
			first, last := x[i], x[i]&^throughBit
			if first != last {
				first = from
			} else if i+1 < len(x) && x[i+1]&throughBit != 0 {
				i++
				last = x[i] &^ throughBit
			}
			if !yield(first, last) {
				return
			}
		}
	}
}

// count returns the number of refs from one on. It does not count further than to most.
func (x refs) count(from series.Ref, most int) (n int) {
	for first, last := range x.runs(from) {
		if n += int(last-first) + 1; n >= most {
			break
		}
	}
	return n
}
