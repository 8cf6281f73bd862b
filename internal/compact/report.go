package compact

import (
	"time"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

// Report is what a cycle or a tick found and did.
type Report struct {
	State   State    // before the jobs
	Planned []Work   // in the order of tenants and plans
	Checked int      // tenants that a tick planned for; it skipped those that were idle shortly before
	Sent    int      // jobs that a tick has handed to workers
	Jobs    []Result // in the order in which they ended; fewer than planned if the context ended
	Garbage Garbage
	Took    time.Duration
}

// Work is a planned job of a tenant.
type Work struct {
	Tenant string
	Job    Job
}

// Of returns the number of jobs with this outcome.
func (r *Report) Of(o Outcome) (n int) {
	for i := range r.Jobs {
		if r.Jobs[i].Outcome == o {
			n++
		}
	}
	return n
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
}

// StateOf describes a snapshot of all of time.
func StateOf(s Settings, now time.Time, snap catalog.Snapshot) State {
	s.fill()
	st := State{
		Tenants: 1, Segments: len(snap.Segments), Blocks: map[key.Level]int{}, BlockBytes: map[key.Level]int64{},
		Tombstones: len(snap.Manifest.Tombstones), Lag: lag(&s, now, &snap),
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

// lag returns how long the oldest small source has been due: since its window closed or, if it came
// later, since LateDelay after it was written.
func lag(s *Settings, now time.Time, snap *catalog.Snapshot) (worst time.Duration) {
	p := planner{set: s, now: now, snap: snap}
	for _, src := range live(snap) {
		if !src.small() {
			continue
		}
		due := p.closes(src.span)
		if late := src.written().Add(s.LateDelay); src.written().After(due) {
			due = late
		}
		worst = max(worst, now.Sub(due))
	}
	return worst
}

// add adds o to st.
func (st *State) add(o State) {
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
	for l, n := range o.Blocks {
		st.Blocks[l] += n
		st.BlockBytes[l] += o.BlockBytes[l]
	}
}
