package query

import (
	"cmp"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/lookup"
)

// batchSamples is the number of samples, about, that are read at a time, by each of the threads: if all are of blocks, few enough to stay in the processor's
// cache; of segments, whose lists may have to be decoded for every batch, more.
const (
	batchSamples        = 128 << 10
	segmentBatchSamples = 1 << 20
)

// batches divides series into batches of about batchSamples, of neighbours in the objects: objects have the series in one order, so that
// the rows of neighbours lie together. Batches end where row groups of the largest object do, if that is not far, for what two of them share of a row
// group is read twice. Their elements are positions in wanted.
func batches(res *lookup.Resolution, wanted []int, whole *reading) [][]uint32 {
	order := make([]uint32, len(wanted))
	places := make([]int64, len(wanted))
	main := res.Largest()
	for i, w := range wanted {
		order[i], places[i] = uint32(i), res.Series[w].Place(main)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(cmp.Compare(places[a], places[b]), cmp.Compare(a, b)) })
	limit := int64(batchSamples)
	if slices.ContainsFunc(wanted, func(w int) bool { return inSegments(res, &res.Series[w], whole.MinT, whole.MaxT) }) {
		limit = segmentBatchSamples
	}
	groups := groupsOf(res, main)
	var out [][]uint32
	var samples int64
	from, last := 0, 0
	for i, o := range order {
		group := groups.of(&res.Series[wanted[o]], main)
		if samples >= limit && (group != last || samples >= 2*limit || len(groups) == 0) {
			out = append(out, order[from:i])
			from, samples = i, 0
		}
		samples += whole.rolled.estimate(res, wanted[o], whole.MinT, whole.MaxT)
		last = group
	}
	if from < len(order) {
		out = append(out, order[from:])
	}
	return out
}

// inSegments says whether a series may have samples of [mint, maxt] (ms) in a segment.
func inSegments(res *lookup.Resolution, s *lookup.ResolvedSeries, mint, maxt int64) bool {
	return slices.ContainsFunc(s.At, func(p lookup.Place) bool {
		f := res.Objects[p.Object].Footer
		return f.Meta == nil && f.MinT <= maxt && f.MaxT >= mint
	})
}

// groupEnds are the rows at which the row groups of a block's samples end, counted over all of its files.
type groupEnds []int64

// groups returns where the row groups of an object end; nowhere if it is a segment.
func groupsOf(res *lookup.Resolution, object int) (out groupEnds) {
	if object >= len(res.Objects) || res.Objects[object].Footer.Meta == nil {
		return nil
	}
	for _, f := range res.Objects[object].Footer.Meta.Files {
		if block.FloatFiles.Has(&f) {
			for i := range f.RowGroups {
				out = append(out, f.RowGroups[i].FirstRow+f.RowGroups[i].Rows)
			}
		}
	}
	return out
}

// of returns the position of the row group in which the samples of a series begin that the object has.
func (g groupEnds) of(s *lookup.ResolvedSeries, object int) int {
	i := slices.IndexFunc(s.At, func(p lookup.Place) bool { return p.Object == object && p.N > 0 })
	if i < 0 {
		return len(g)
	}
	return sort.Search(len(g), func(k int) bool { return g[k] > s.At[i].First })
}
