package recent

import (
	"iter"
	"sort"

	"github.com/promlake/promlake/internal/format/series"
)

// generation is the series of one table of label sets. Writers begin a new table now and then; the
// samples of a series move to the new one when its next samples come.
type generation struct {
	view       *series.View // of the last segment
	chains     chains
	postings   postings
	selections *selections
	others     map[series.Ref]struct{} // series that have native histograms, which are read elsewhere

	// Of the generation before the last one:
	byID map[uint64]series.Ref // series with samples; of several with one ID, one
	left int                   // series with samples
	upto int64                 // ms: no sample in it is later
}

// grow adds the series of a later view.
func (g *generation) grow(view *series.View) {
	g.view = view
	g.chains.grow(view.Len())
	g.postings.extend(view)
}

// bytes is the memory without that of samples and selections.
func (g *generation) bytes() int64 {
	const perID = 24
	if g == nil {
		return 0
	}
	return g.chains.bytes() + g.postings.bytes + int64(len(g.byID))*perID
}

// adopt moves the samples of a series without samples from the generation before.
func (g *generation) adopt(ref series.Ref, from *generation) {
	at, ok := from.byID[g.view.ID(ref)]
	if !ok || from.chains.at(at).line == 0 || !sameLabels(g.view, ref, from.view, at) {
		return
	}
	*g.chains.at(ref), *from.chains.at(at) = *from.chains.at(at), chain{}
	from.left--
	if _, other := from.others[at]; other {
		g.others[ref] = struct{}{}
	}
}

// sameLabels reports whether label sets of two tables are equal.
func sameLabels(a *series.View, x series.Ref, b *series.View, y series.Ref) bool {
	p, q := a.Pairs(x), b.Pairs(y)
	if len(p) != len(q) || a.Metrics[a.Metric(x)] != b.Metrics[b.Metric(y)] {
		return false
	}
	for i := range p {
		if a.Names[p[i].Name] != b.Names[q[i].Name] || a.Values[p[i].Name][p[i].Value] != b.Values[q[i].Name][q[i].Value] {
			return false
		}
	}
	return true
}

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
