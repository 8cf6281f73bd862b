package lookup

import (
	"cmp"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/format/block"
)

// batchSamples is about the number of samples that each thread reads at a time: few enough to stay
// in the processor's cache. Batches with samples of segments, whose lists may have to be decoded
// for every batch, are larger.
const (
	batchSamples        = 128 << 10
	segmentBatchSamples = 1 << 20
)

// Small reports whether the samples of all series are certainly one batch.
func (r *Resolution) Small() bool { return r.Samples < batchSamples/16 && len(r.Series) <= fewSeries }

// Batches divides some series, which are positions in the resolution, into batches of about
// batchSamples, of neighbours in the objects: objects have the series in one order, so that the
// rows of neighbours lie together. Batches end where row groups of the largest object do, if that
// is not far, because a row group that two of them share is read twice. Their elements are
// positions in wanted. estimate is about how many samples a series has in [mint, maxt] (ms).
func (r *Resolution) Batches(wanted []int, mint, maxt int64, estimate func(series int) int64) [][]uint32 {
	order := make([]uint32, len(wanted))
	places := make([]int64, len(wanted))
	main := r.Largest()
	limit, all := int64(batchSamples), int64(0)
	estimates := make([]int64, len(wanted))
	for i, w := range wanted {
		x := &r.Series[w]
		order[i], places[i], estimates[i] = uint32(i), x.Place(main), estimate(w)
		all += estimates[i]
		if limit == batchSamples && slices.ContainsFunc(x.At, func(p Place) bool {
			f := r.Objects[p.Object].Footer
			return f.Meta == nil && f.MinT <= maxt && f.MaxT >= mint
		}) {
			limit = segmentBatchSamples
		}
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(cmp.Compare(places[a], places[b]), cmp.Compare(a, b)) })
	if all < limit && len(order) > 0 { // as is usual for panels and rules
		return [][]uint32{order}
	}
	var ends []int64 // of the row groups of main, counted over all of its files; none if it is a segment
	if main < len(r.Objects) && r.Objects[main].Footer.Meta != nil {
		for _, f := range r.Objects[main].Footer.Meta.Files {
			for i := range f.RowGroups {
				if block.FloatFiles.Has(&f) {
					ends = append(ends, f.RowGroups[i].FirstRow+f.RowGroups[i].Rows)
				}
			}
		}
	}
	var out [][]uint32
	var samples int64
	from, last := 0, 0
	for i, o := range order {
		x, group := &r.Series[wanted[o]], len(ends)
		if k := x.In(main); k >= 0 && len(ends) > 0 {
			if first, n := r.Floats(x.At[k]); n > 0 {
				group = sort.Search(len(ends), func(g int) bool { return ends[g] > first })
			}
		}
		if samples >= limit && (group != last || samples >= 2*limit || len(ends) == 0) {
			out = append(out, order[from:i])
			from, samples = i, 0
		}
		samples += estimates[o]
		last = group
	}
	if from < len(order) {
		out = append(out, order[from:])
	}
	return out
}
