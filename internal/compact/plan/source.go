package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// span is a half-open range of time, ms.
type span struct{ from, to int64 }

func spanOf(l key.Level, w key.Window) span { return span{int64(w), int64(w) + l.Millis()} }

func (s span) overlaps(o span) bool { return s.from < o.to && o.from < s.to }
func (s span) holds(o span) bool    { return s.from <= o.from && o.to <= s.to }

// Source is a live object that a merge may take.
type Source struct {
	Rank      ulid.ULID
	Through   ulid.ULID // the tombstones above it apply
	IsSegment bool
	Segment   catalog.SegmentID // of segments
	Block     catalog.Block     // of blocks
	Bytes     int64
	span      span // its window
}

// id is the object's own identifier.
func (s *Source) id() ulid.ULID {
	if s.IsSegment {
		return s.Segment.ID
	}
	return s.Block.ID
}

// at reports whether the source is a block of the level.
func (s *Source) at(l key.Level) bool { return !s.IsSegment && s.Block.Level == l }

// small reports whether the source is a segment or a part, which become part of a 2h block.
func (s *Source) small() bool { return s.IsSegment || s.Block.Level == key.Part }

// written returns the time of its newest write, by the clock of the store or of the queue.
func (s *Source) written() time.Time { return ulid.Time(s.Rank.Time()) }

// samples estimates the number of samples: exact for blocks.
func (s *Source) samples() int64 {
	if s.IsSegment {
		return s.content() / segmentSampleBytes
	}
	return s.Block.Samples
}

// content returns about how many of a segment's bytes grow with its samples.
func (s *Source) content() int64 { return max(0, s.Bytes-segmentFooterBytes) }

// live returns all live objects of a snapshot by rank, lowest first. Objects of equal ranks never
// hold the same series and time.
func live(snap *catalog.Snapshot) []Source {
	all := make([]Source, 0, len(snap.Segments)+len(snap.Blocks))
	for _, s := range snap.Segments {
		all = append(all, Source{
			Rank: s.Rank, Through: s.DeletesThrough, IsSegment: true, Segment: s.SegmentID(), Bytes: s.Size,
			span: span{int64(s.Window), s.Window.End()},
		})
	}
	for _, b := range snap.Blocks {
		all = append(all, Source{Rank: b.Rank, Through: b.DeletesThrough, Block: b, Bytes: b.Bytes, span: spanOf(b.Level, b.Window)})
	}
	slices.SortFunc(all, func(a, b Source) int {
		return cmp.Or(a.Rank.Compare(b.Rank), cmp.Compare(a.span.from, b.span.from), a.id().Compare(b.id()))
	})
	return all
}

// SourcesOf returns the sources as a transition of the manifest takes them.
func SourcesOf(srcs []Source) catalog.Sources {
	var out catalog.Sources
	for _, s := range srcs {
		if s.IsSegment {
			out.Segments = append(out.Segments, s.Segment)
		} else {
			out.Blocks = append(out.Blocks, s.Block.BlockID())
		}
	}
	return out
}

// State counts the live objects of one tenant or of all.
type State struct {
	Tenants         int
	Segments        int // live
	SegmentBytes    int64
	Blocks          map[key.Level]int // live
	BlockBytes      map[key.Level]int64
	Tombstones      int
	GarbageSegments int           // consumed and not yet deleted
	GarbageBlocks   int           // retired and not yet deleted
	Lag             time.Duration // since the oldest 2h window was due that is not in blocks
	Arrived         time.Time     // set by the caller to the result of Arrived; the later one counts
}

// StateOf describes a snapshot of all of time.
func StateOf(policy Policy, now time.Time, snap catalog.Snapshot) State {
	st := State{
		Tenants: 1, Segments: len(snap.Segments), Blocks: map[key.Level]int{}, BlockBytes: map[key.Level]int64{},
		Tombstones: len(snap.Manifest.Tombstones), Lag: lag(&policy, now, &snap),
	}
	for _, seg := range snap.Segments {
		st.SegmentBytes += seg.Size
	}
	for _, b := range snap.Blocks {
		st.Blocks[b.Level]++
		st.BlockBytes[b.Level] += b.Bytes
	}
	for _, c := range snap.Manifest.Consumed {
		if c.Gone == 0 {
			st.GarbageSegments++
		}
	}
	for _, r := range snap.Manifest.Retired {
		if r.Gone == 0 {
			st.GarbageBlocks++
		}
	}
	return st
}

// Arrived returns when senders last wrote, by the clock of the store or of the queue; zero if they
// never did. If their writes come through the queue, other segments, which rules write, do not
// count. A manifest names consumed segments for more than MaxJobAge. If none of them came through
// the queue, the last arrival was earlier, and Arrived returns the time MaxJobAge ago, or that of
// the newest segment if it is older.
func Arrived(queued bool, now time.Time, snap catalog.Snapshot) time.Time {
	all := live(&snap)
	if len(all) == 0 {
		return time.Time{}
	}
	newest := all[len(all)-1].written()
	if !queued {
		return newest
	}
	arrived := now.Add(-catalog.MaxJobAge)
	if newest.Before(arrived) {
		arrived = newest
	}
	for _, s := range snap.Segments {
		if s.Queued {
			arrived = Later(arrived, ulid.Time(s.ID.Time()))
		}
	}
	for _, c := range snap.Manifest.Consumed {
		if c.Queued {
			arrived = Later(arrived, ulid.Time(c.ID.Time()))
		}
	}
	return arrived
}

// lag returns how long the oldest small source has been due: since its window closed or, if it came
// later, since LateDelay after it was written.
func lag(policy *Policy, now time.Time, snap *catalog.Snapshot) (worst time.Duration) {
	p := planner{set: policy, now: now, snap: snap}
	for _, src := range live(snap) {
		if !src.small() {
			continue
		}
		due := p.closes(src.span)
		if late := src.written().Add(policy.LateDelay); src.written().After(due) {
			due = late
		}
		worst = max(worst, now.Sub(due))
	}
	return worst
}

// Add adds o to st.
func (st *State) Add(o State) {
	if st.Blocks == nil {
		st.Blocks, st.BlockBytes = map[key.Level]int{}, map[key.Level]int64{}
	}
	st.Tenants += o.Tenants
	st.Segments += o.Segments
	st.SegmentBytes += o.SegmentBytes
	st.Tombstones += o.Tombstones
	st.GarbageSegments += o.GarbageSegments
	st.GarbageBlocks += o.GarbageBlocks
	st.Lag = max(st.Lag, o.Lag)
	st.Arrived = Later(st.Arrived, o.Arrived)
	for l, n := range o.Blocks {
		st.Blocks[l] += n
		st.BlockBytes[l] += o.BlockBytes[l]
	}
}

// Check returns catalog.ErrConflict if a source of the job is no longer live in the manifest, or no
// longer for this job.
func Check(m *catalog.Manifest, job *Job) error {
	if job.Kind == Cut { // the split must exist and still need the slice
		i := slices.IndexFunc(m.Splits, func(sp catalog.Split) bool { return sp.ID == job.Split })
		if i < 0 {
			return fmt.Errorf("split %s is over: %w", job.Split, catalog.ErrConflict)
		}
		if slices.ContainsFunc(m.Splits[i].Done, func(b catalog.Block) bool { return b.Slice == job.Slice }) {
			return fmt.Errorf("slice %s of split %s is done: %w", job.Slice, job.Split, catalog.ErrConflict)
		}
	} else { // the commit would be refused, after all the work
		for i := range m.Splits {
			claimed := &m.Splits[i].Sources
			if slices.ContainsFunc(job.Sources.Segments, func(id catalog.SegmentID) bool { return slices.Contains(claimed.Segments, id) }) ||
				slices.ContainsFunc(job.Sources.Blocks, func(id catalog.BlockID) bool { return slices.Contains(claimed.Blocks, id) }) {
				return fmt.Errorf("split %s claims a source: %w", m.Splits[i].ID, catalog.ErrConflict)
			}
		}
	}
	for _, id := range job.Sources.Segments {
		if slices.ContainsFunc(m.Consumed, func(c catalog.Consumed) bool { return c.SegmentID == id }) {
			return fmt.Errorf("segment %s is consumed: %w", id, catalog.ErrConflict)
		}
	}
	for _, id := range job.Sources.Blocks {
		if !slices.ContainsFunc(m.Blocks, func(b catalog.Block) bool { return b.BlockID() == id }) {
			return fmt.Errorf("block %s is not live: %w", id, catalog.ErrConflict)
		}
	}
	return nil
}

// Resolve returns the sources of a merge, by rank. snap was taken after the job was planned, and
// has all of the job's window. Errors: catalog.ErrConflict if a source is no longer there or no
// longer for this job, or if a segment appeared between them in rank, as a delayed message of the
// queue can; objstore.ErrNotFound if a segment is missing that is live in the manifest.
func Resolve(snap *catalog.Snapshot, job *Job) ([]Source, error) {
	if err := Check(&snap.Manifest, job); err != nil {
		return nil, err
	}
	near := live(snap)
	segments := make(map[catalog.SegmentID]bool, len(job.Sources.Segments))
	for _, id := range job.Sources.Segments {
		segments[id] = true
	}
	out := make([]Source, 0, job.Sources.Len())
	for i := range near {
		s := &near[i]
		if s.IsSegment && segments[s.Segment] || !s.IsSegment && slices.Contains(job.Sources.Blocks, s.Block.BlockID()) {
			out = append(out, *s)
		}
	}
	if len(out) < job.Sources.Len() {
		return nil, fmt.Errorf("%d of the %d sources are there: %w", len(out), job.Sources.Len(), objstore.ErrNotFound)
	}
	if job.Kind != Cut && !closedSet(out, near) { // what a split has claimed stays so
		return nil, fmt.Errorf("another object is between the sources in rank: %w", catalog.ErrConflict)
	}
	return out, nil
}
