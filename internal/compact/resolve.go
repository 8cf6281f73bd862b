package compact

import (
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/catalog"
)

// resolve finds the sources of a merge in the manifest, by rank. Errors: catalog.ErrConflict if one is no longer there, or no longer for this job.
func resolve(m *catalog.Manifest, job *Job) ([]source, error) {
	if job.Kind == Cut {
		if err := undone(m, job); err != nil {
			return nil, err
		}
	} else if err := unclaimed(m, job); err != nil {
		return nil, err
	}
	out := make([]source, 0, job.size())
	for _, id := range job.Sources.Segments {
		if slices.ContainsFunc(m.Consumed, func(c catalog.Consumed) bool { return c.SegmentID == id }) {
			return nil, fmt.Errorf("segment %s is consumed: %w", id, catalog.ErrConflict)
		}
		out = append(out, source{rank: id.ID, segment: true, seg: id, span: span{int64(id.Window), id.Window.End()}})
	}
	for _, id := range job.Sources.Blocks {
		i := slices.IndexFunc(m.Blocks, func(b catalog.Block) bool { return b.BlockID() == id })
		if i < 0 {
			return nil, fmt.Errorf("block %s is not live: %w", id, catalog.ErrConflict)
		}
		out = append(out, blockSource(m.Blocks[i]))
	}
	slices.SortFunc(out, compareSources)
	return out, nil
}

// undone checks that the split of a slice job is there and wants the slice.
func undone(m *catalog.Manifest, job *Job) error {
	i := slices.IndexFunc(m.Splits, func(sp catalog.Split) bool { return sp.ID == job.Split })
	if i < 0 {
		return fmt.Errorf("split %s is over: %w", job.Split, catalog.ErrConflict)
	}
	if slices.ContainsFunc(m.Splits[i].Done, func(b catalog.Block) bool { return b.Slice == job.Slice }) {
		return fmt.Errorf("slice %s of split %s is done: %w", job.Slice, job.Split, catalog.ErrConflict)
	}
	return nil
}

// unclaimed checks that no split has a source of the job, whose commit would be refused after all the work.
func unclaimed(m *catalog.Manifest, job *Job) error {
	for i := range m.Splits {
		claimed := &m.Splits[i].Sources
		if slices.ContainsFunc(job.Sources.Segments, func(id catalog.SegmentID) bool { return slices.Contains(claimed.Segments, id) }) ||
			slices.ContainsFunc(job.Sources.Blocks, func(id catalog.BlockID) bool { return slices.Contains(claimed.Blocks, id) }) {
			return fmt.Errorf("split %s claims a source: %w", m.Splits[i].ID, catalog.ErrConflict)
		}
	}
	return nil
}

// tombstones returns those that apply to the source.
func tombstones(m *catalog.Manifest, s *source) []catalog.Tombstone {
	var through ulid.ULID
	if !s.segment {
		through = s.block.DeletesThrough
	}
	var out []catalog.Tombstone
	for _, t := range m.Tombstones {
		if t.AppliesTo(s.rank, through) && t.Overlaps(s.span.from, s.span.to-1) {
			out = append(out, t)
		}
	}
	return out
}

// shares says whether two slices have series in common. The zero value is the whole.
func shares(a, b catalog.Slice) bool {
	if a.Of <= 1 || b.Of <= 1 {
		return true
	}
	return a.Index*b.Of < (b.Index+1)*a.Of && b.Index*a.Of < (a.Index+1)*b.Of
}
