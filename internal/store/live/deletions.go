// Package live defines which samples of a tenant's objects count, for every reader of several
// objects. Two rules:
//
//   - A sample is deleted if a tombstone covers its object, matches its series and covers its
//     time.
//   - Of the samples of one series and time that are left, the one in the object of the highest
//     rank counts, be it a float, a stale marker or a histogram. If that object has both a float
//     and a histogram of that time, the histogram counts.
//
// Objects stand for their positions in the order of ranks, lowest first. Objects of equal ranks
// never hold the same series and time. The views of the Python package and the macros in
// schemas/sql follow the second rule; livetest has the cases that all of them answer.
package live

import (
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/store/catalog"
)

// Deletions are the tombstones that cover some objects. The zero value deletes nothing.
type Deletions struct {
	tombs    []catalog.Tombstone
	matchers [][]*labels.Matcher // by tombstone
	covers   [][]bool            // by object and tombstone; nil: none covers it
}

// NewDeletions prepares tombstones for objects, of each of which it takes the DeletesThrough
// (catalog.Tombstone). Errors: catalog.ErrInvalid for a matcher that does not compile.
func NewDeletions(tombs []catalog.Tombstone, through []ulid.ULID) (Deletions, error) {
	if len(tombs) == 0 {
		return Deletions{}, nil
	}
	d := Deletions{tombs: tombs, covers: make([][]bool, len(through))}
	for _, t := range tombs {
		ms, err := t.LabelMatchers()
		if err != nil {
			return d, fmt.Errorf("read tombstone %s: %w", t.ID, err)
		}
		d.matchers = append(d.matchers, ms)
	}
	for object, id := range through {
		for k, t := range tombs {
			if t.Covers(id) {
				if d.covers[object] == nil {
					d.covers[object] = make([]bool, len(tombs))
				}
				d.covers[object][k] = true
			}
		}
	}
	return d, nil
}

// Matching appends the tombstones that match a series, by their positions.
func (d *Deletions) Matching(dst []int, lset labels.Labels) []int {
	for k, ms := range d.matchers {
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(lset.Get(m.Name)) }) {
			dst = append(dst, k)
		}
	}
	return dst
}

// Concern reports whether a tombstone covers an object.
func (d *Deletions) Concern(object int) bool {
	return object < len(d.covers) && d.covers[object] != nil
}

// In yields the ranges of time in which the samples of a series in an object are deleted: those of
// the tombstones that cover the object, of the ones that match the series.
func (d *Deletions) In(object int, matching []int) iter.Seq[tombstones.Interval] {
	return func(yield func(tombstones.Interval) bool) {
		if len(matching) == 0 || !d.Concern(object) {
			return
		}
		for _, k := range matching {
			if t := &d.tombs[k]; d.covers[object][k] && !yield(tombstones.Interval{Mint: t.MinT, Maxt: t.MaxT}) {
				return
			}
		}
	}
}

// Gone appends the ranges of In to dst, which is empty, and joins those that touch: the result
// ascends.
func (d *Deletions) Gone(dst tombstones.Intervals, object int, matching []int) tombstones.Intervals {
	for i := range d.In(object, matching) {
		dst = dst.Add(i)
	}
	return dst
}

// Kept yields the ranges [from, to) of positions in ascending times (ms) that are not within gone.
func Kept(times []int64, gone tombstones.Intervals) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from := 0
		for _, g := range gone {
			rest := times[from:]
			to := from + sort.Search(len(rest), func(i int) bool { return rest[i] >= g.Mint })
			next := from + sort.Search(len(rest), func(i int) bool { return rest[i] > g.Maxt })
			if from < to && !yield(from, to) {
				return
			}
			from = next
		}
		if from < len(times) {
			yield(from, len(times))
		}
	}
}

// Within reports whether a time (ms) is within one of the ranges, which are few.
func Within(t int64, gone tombstones.Intervals) bool {
	return slices.ContainsFunc(gone, func(g tombstones.Interval) bool { return g.InBounds(t) })
}
