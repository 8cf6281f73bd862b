package plan

import (
	"math"
	"slices"

	"github.com/promlake/promlake/internal/store/catalog"
)

// MaxSlices bounds the slices of a split.
const MaxSlices = 64

// RowBytes is the memory for a series of one source, about: its row in merge and reader.
const RowBytes = 48

// Costs that jobs are estimated by.
const (
	segmentFooterBytes = 4 << 10 // about, of a segment's file without samples and series
	segmentSampleBytes = 4       // bytes of a segment's file per sample, about
	segmentSeriesBytes = 12      // bytes of a segment's file per series, at least
	segmentShrink      = 2       // by which a segment's samples take less memory than its file, at least
	firstSegments      = 256     // as many segments of a job have nearly all of its series:
	laterShare         = 16      // of the series of each later one, one in so many is counted
	seriesBytes        = 320     // memory for a series: its labels, its row in the new series table
)

// slicesFor returns the number of slices into which a merge must be split to stay within
// MemoryBytes and MaxJobSamples: a power of two, 1 for none. Sources mostly have the same series:
// one in eight series beyond those of the largest source is assumed to be new, and fewer in
// segments that follow many others.
func (p *Policy) slicesFor(srcs []Source) int {
	var sum, most, samples, rows, group int64
	segments := 0
	for i := range srcs {
		n := srcs[i].content() / segmentSeriesBytes
		if !srcs[i].IsSegment {
			n = srcs[i].Block.Series
			rows += n
		}
		if i > 0 && sliceOf(&srcs[i-1], &srcs[i]) { // slices share no series
			group += n
		} else {
			group = n
		}
		if srcs[i].IsSegment {
			if segments++; segments > firstSegments {
				n /= laterShare
			}
		}
		sum, most, samples = sum+n, max(most, group), samples+srcs[i].samples()
	}
	memory := (most+(sum-most)/8)*seriesBytes + rows*RowBytes
	n := 1
	for n < MaxSlices && (memory/int64(n) > p.MemoryBytes || samples/int64(n) > p.MaxJobSamples) {
		n *= 2
	}
	return n
}

// slices plans the missing slices of the splits in progress. Until they are done, nothing else is
// planned in their windows.
func (p *planner) slices() {
	for _, sp := range p.snap.Manifest.Splits {
		p.splits = append(p.splits, spanOf(sp.Level, sp.Window))
		for i := range sp.Of {
			if slices.ContainsFunc(sp.Done, func(b catalog.Block) bool { return b.Slice.Index == i }) {
				continue
			}
			j := Job{
				Kind: Cut, Level: sp.Level, Window: sp.Window, Sources: sp.Sources, Split: sp.ID,
				Slice: catalog.Slice{Index: i, Of: sp.Of}, Why: "the whole is too large for one job",
			}
			for _, b := range p.snap.Blocks {
				if slices.Contains(sp.Sources.Blocks, b.BlockID()) {
					j.Samples += b.Samples / int64(sp.Of)
					j.Bytes += b.Bytes
				}
			}
			for _, s := range p.snap.Segments {
				if slices.Contains(sp.Sources.Segments, s.SegmentID()) {
					j.Bytes += s.Size
				}
			}
			p.jobs = append(p.jobs, j)
		}
	}
}

// expire plans the removal of sources that are past the tenant's retention.
func (p *planner) expire(all []Source) {
	keep, ok := p.set.TenantRetention[p.snap.Tenant]
	if !ok {
		keep = p.set.Retention
	}
	p.before = math.MinInt64
	if keep == 0 { // for ever
		return
	}
	p.before = p.now.Add(-keep).UnixMilli()
	var gone []Source
	for _, s := range all {
		if p.expired(&s) {
			gone = append(gone, s)
		}
	}
	for part := range slices.Chunk(gone, MaxExpire) {
		p.add(Expire, 0, 0, part, "older than the retention of "+keep.String())
	}
}

// MaxExpire bounds the objects of one Expire job, and so its message.
const MaxExpire = 1024

// expired reports whether all of the source is past its retention. A source that a split claims
// does not expire before the split is done.
func (p *planner) expired(s *Source) bool {
	end := s.span.to // exclusive
	if !s.IsSegment && s.Block.MinT <= s.Block.MaxT {
		end = s.Block.MaxT + 1
	}
	return end <= p.before && !slices.ContainsFunc(p.splits, s.span.overlaps)
}
