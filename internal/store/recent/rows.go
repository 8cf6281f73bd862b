package recent

import (
	"cmp"
	"slices"

	"github.com/promlake/promlake/internal/format/series"
)

// rows are the rows of a segment sorted by their refs, in which the series of a target mostly are
// neighbours: what a head has of them lies together in memory.
type rows struct {
	sorted []uint32
	single bool     // each row has one sample
	at     []uint32 // by ref: one more than the row; zeros between two calls of sort
}

// sparse is the inverse of the share of the refs between the least and the greatest one from which
// rows are sorted by comparing them.
const sparse = 32

// sort sorts the rows of refs, all of which are below n.
func (r *rows) sort(refs []series.Ref, n int) {
	r.sorted = r.sorted[:0]
	if len(refs) == 0 {
		return
	}
	low, high := slices.Min(refs), slices.Max(refs)+1
	if len(refs)*sparse < int(high-low) {
		for row := range refs {
			r.sorted = append(r.sorted, uint32(row))
		}
		slices.SortFunc(r.sorted, func(a, b uint32) int { return cmp.Compare(refs[a], refs[b]) })
		return
	}
	if more := n - len(r.at); more > 0 {
		r.at = append(r.at, make([]uint32, more)...)
	}
	for row, ref := range refs {
		r.at[ref] = uint32(row) + 1
	}
	for _, row := range r.at[low:high] {
		if row > 0 {
			r.sorted = append(r.sorted, row-1)
		}
	}
	clear(r.at[low:high])
}

// samples returns where the samples of a row of the segment begin and end.
func (r *rows) samples(s *Segment, row uint32) (from, end int) {
	if r.single {
		return int(row), int(row) + 1
	}
	if row > 0 {
		from = s.End(int(row) - 1)
	}
	return from, s.End(int(row))
}
