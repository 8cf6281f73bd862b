package compact

import (
	"cmp"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

// span is a half-open range of time, ms.
type span struct{ from, to int64 }

func spanOf(l key.Level, w key.Window) span { return span{int64(w), int64(w) + l.Millis()} }

func (s span) overlaps(o span) bool { return s.from < o.to && o.from < s.to }
func (s span) holds(o span) bool    { return s.from <= o.from && o.to <= s.to }

// source is a live object that a merge may take.
type source struct {
	rank    ulid.ULID
	through ulid.ULID // the tombstones above it apply
	segment bool
	seg     catalog.SegmentID
	block   catalog.Block // of blocks
	span    span          // its window
	bytes   int64
}

// id is the object's own identifier.
func (s *source) id() ulid.ULID {
	if s.segment {
		return s.seg.ID
	}
	return s.block.ID
}

// at reports whether the source is a block of the level.
func (s *source) at(l key.Level) bool { return !s.segment && s.block.Level == l }

// small reports whether the source is a segment or a part, which become part of a 2h block.
func (s *source) small() bool { return s.segment || s.block.Level == key.Part }

// written returns the time of its newest write, by the clock of the store or of the queue.
func (s *source) written() time.Time { return ulid.Time(s.rank.Time()) }

// samples estimates the number of samples: exact for blocks.
func (s *source) samples() int64 {
	if s.segment {
		return s.content() / segmentSampleBytes
	}
	return s.block.Samples
}

// content returns about how many of a segment's bytes grow with its samples.
func (s *source) content() int64 { return max(0, s.bytes-segmentFooterBytes) }

// live returns all live objects of a snapshot by rank, lowest first. Objects of equal ranks never
// hold the same series and time.
func live(snap *catalog.Snapshot) []source {
	all := make([]source, 0, len(snap.Segments)+len(snap.Blocks))
	for _, s := range snap.Segments {
		all = append(all, source{
			rank: s.Rank, through: s.DeletesThrough, segment: true, seg: s.SegmentID(), bytes: s.Size,
			span: span{int64(s.Window), s.Window.End()},
		})
	}
	for _, b := range snap.Blocks {
		all = append(all, source{rank: b.Rank, through: b.DeletesThrough, block: b, bytes: b.Bytes, span: spanOf(b.Level, b.Window)})
	}
	slices.SortFunc(all, func(a, b source) int {
		return cmp.Or(a.rank.Compare(b.rank), cmp.Compare(a.span.from, b.span.from), a.id().Compare(b.id()))
	})
	return all
}

// sourcesOf returns the sources as a transition of the manifest takes them.
func sourcesOf(srcs []source) catalog.Sources {
	var out catalog.Sources
	for _, s := range srcs {
		if s.segment {
			out.Segments = append(out.Segments, s.seg)
		} else {
			out.Blocks = append(out.Blocks, s.block.BlockID())
		}
	}
	return out
}
