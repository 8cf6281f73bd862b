package catalog

import (
	"fmt"
	"math/bits"
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

// Resplit replaces a split by one of the same sources in more slices, because a slice is too large
// for a job. The finished slices are retired. It conflicts if the split is gone, and as BeginSplit
// does.
func (m Manifest) Resplit(now time.Time, split ulid.ULID, by Split) (Manifest, error) {
	old, ok := m.split(split)
	if !ok {
		return Manifest{}, fmt.Errorf("split again: split %s is gone: %w", split, ErrConflict)
	}
	if by.Of <= old.Of || by.Level != old.Level || by.Window != old.Window {
		return Manifest{}, fmt.Errorf("split again: %s %s in %d slices is no finer than %s %s in %d: %w", by.Level, by.Window, by.Of, old.Level, old.Window, old.Of, ErrInvalid)
	}
	by.Sources = old.Sources
	return m.dropSplit(now, split).BeginSplit(now, by)
}

// MaxSlices bounds the slices of a split.
const MaxSlices = 1 << 16

// Slice is the part Index of Of equal parts of the series ids: those in [Index·2⁶⁴/Of,
// (Index+1)·2⁶⁴/Of). {0, 0} and {0, 1} are the whole.
type Slice struct {
	Index int `json:"index"`
	Of    int `json:"of"`
}

// Contains reports whether the series with this id (series.ID of its labels) is in the slice.
func (s Slice) Contains(id uint64) bool {
	if s.Of <= 1 {
		return true
	}
	hi, _ := bits.Mul64(id, uint64(s.Of)) // ⌊id·Of / 2⁶⁴⌋
	return hi == uint64(s.Index)
}

// Shares reports whether two slices have identifiers in common.
func (s Slice) Shares(o Slice) bool {
	if s.Of <= 1 || o.Of <= 1 {
		return true
	}
	return s.Index*o.Of < (o.Index+1)*s.Of && o.Index*s.Of < (s.Index+1)*o.Of
}

// Within reports whether all of s is in o.
func (s Slice) Within(o Slice) bool {
	if o.Of <= 1 {
		return true
	}
	return s.Of > 1 && o.Index*s.Of <= s.Index*o.Of && (s.Index+1)*o.Of <= (o.Index+1)*s.Of
}

// String returns "2/8" for the third of eight, and "whole".
func (s Slice) String() string {
	if s.Of <= 1 {
		return "whole"
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

func (s Slice) valid() bool {
	return s.Index == 0 && s.Of == 0 || s.Index >= 0 && s.Index < s.Of && s.Of <= MaxSlices
}
