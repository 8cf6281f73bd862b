package plan

import (
	"fmt"
	"slices"

	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

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
