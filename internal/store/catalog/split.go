package catalog

import (
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
)

// BeginSplit records a split without finished slices, which claims its sources. It conflicts if a
// source is not live or claimed, and if the split was planned more than MaxJobAge ago, because its
// sources may have been deleted and forgotten since.
func (m Manifest) BeginSplit(now time.Time, sp Split) (Manifest, error) {
	sp.Sources.Segments = slices.SortedFunc(slices.Values(sp.Sources.Segments), compareSegments)
	sp.Sources.Blocks = slices.SortedFunc(slices.Values(sp.Sources.Blocks), compareBlocks)
	if err := sp.validate(); err != nil {
		return Manifest{}, err
	}
	if len(sp.Done) > 0 {
		return Manifest{}, fmt.Errorf("begin split %s: slices are done already: %w", sp.ID, ErrInvalid)
	}
	if _, ok := m.split(sp.ID); ok {
		return Manifest{}, fmt.Errorf("begin split %s: it has begun: %w", sp.ID, ErrConflict)
	}
	if err := m.claimable(sp.Sources); err != nil {
		return Manifest{}, fmt.Errorf("begin split %s: %w", sp.ID, err)
	}
	if err := m.young(now, sp.ID); err != nil {
		return Manifest{}, fmt.Errorf("begin split %s: %w", sp.ID, err)
	}
	next := m.clone()
	next.Splits = append(next.Splits, sp)
	next.sort()
	return next, nil
}

// SliceDone records the finished slice b.Slice of a split: a block, or one with neither series nor
// bytes if nothing is in the slice. The last slice makes the blocks of all slices live in place of
// the split's sources. It conflicts if the split is gone or the slice done, and as Replace does
// because of the block.
func (m Manifest) SliceDone(now time.Time, split ulid.ULID, b Block) (Manifest, error) {
	sp, ok := m.split(split)
	if !ok {
		return Manifest{}, fmt.Errorf("finish slice %s: split %s is gone: %w", b.Slice, split, ErrConflict)
	}
	if err := m.admitSlice(now, sp, b); err != nil {
		return Manifest{}, fmt.Errorf("finish slice %s of split %s: %w", b.Slice, split, err)
	}
	sp.Done = append(slices.Clone(sp.Done), b)
	slices.SortFunc(sp.Done, func(a, b Block) int { return a.Slice.Index - b.Slice.Index })
	if len(sp.Done) == sp.Of {
		// All slices are done, and become live.
		next := m.consume(now, sp.Sources)
		next.Splits = slices.DeleteFunc(next.Splits, func(s Split) bool { return s.ID == sp.ID })
		for _, b := range sp.Done {
			if b.empty() {
				continue
			}
			if err := m.tombstonesCover(b, sp.Sources); err != nil {
				return Manifest{}, fmt.Errorf("finish split %s: %w", sp.ID, err)
			}
			next.Blocks = append(next.Blocks, b)
		}
		next.sort()
		return next, nil
	}
	next := m.clone()
	next.Splits[slices.IndexFunc(next.Splits, func(s Split) bool { return s.ID == split })] = sp
	return next, nil
}

func (m Manifest) admitSlice(now time.Time, sp Split, b Block) error {
	if b.Slice.Of != sp.Of || !b.Slice.valid() || b.Level != sp.Level || b.Window != sp.Window {
		return fmt.Errorf("it is slice %s of %s %s: %w", b.Slice, b.Level, b.Window, ErrInvalid)
	}
	if slices.ContainsFunc(sp.Done, func(d Block) bool { return d.Slice == b.Slice }) {
		return fmt.Errorf("it is done: %w", ErrConflict)
	}
	if b.empty() {
		return nil
	}
	if i := slices.IndexFunc(sp.Done, func(d Block) bool { return !d.empty() }); i >= 0 && sp.Done[i].Rank != b.Rank {
		return fmt.Errorf("its rank is %s, that of slice %s is %s: %w", b.Rank, sp.Done[i].Slice, sp.Done[i].Rank, ErrInvalid)
	}
	return m.admit(now, b, sp.Sources)
}

// dropSplit removes a split: its sources are free again, and its finished slices are retired.
func (m Manifest) dropSplit(now time.Time, split ulid.ULID) Manifest {
	next := m.clone()
	next.Splits = slices.DeleteFunc(next.Splits, func(s Split) bool { return s.ID == split })
	sp, _ := m.split(split)
	for _, b := range sp.Done {
		if !b.empty() {
			next.Retired = append(next.Retired, m.retire(now, []BlockID{b.BlockID()})...)
		}
	}
	next.sort()
	return next
}

func (m Manifest) split(id ulid.ULID) (Split, bool) {
	i := slices.IndexFunc(m.Splits, func(s Split) bool { return s.ID == id })
	if i < 0 {
		return Split{}, false
	}
	return m.Splits[i], true
}
