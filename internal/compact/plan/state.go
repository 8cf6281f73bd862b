package plan

import (
	"time"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

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
	for l, n := range o.Blocks {
		st.Blocks[l] += n
		st.BlockBytes[l] += o.BlockBytes[l]
	}
}
