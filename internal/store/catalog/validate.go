package catalog

import (
	"cmp"
	"fmt"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
)

// validate checks the invariants of manifests: the version, sorted lists without duplicates, valid
// entries.
func (m Manifest) validate() error {
	if m.Version != ManifestVersion {
		return fmt.Errorf("manifest of version %d, this program knows %d: %w", m.Version, ManifestVersion, ErrFormat)
	}
	if (m.Generation == 0) != (m.ID == ulid.ULID{}) || m.Parent.Compare(m.ID) > 0 || m.Oldest.Generation > m.Generation {
		return fmt.Errorf("generation %d, id %s, parent %s and oldest %d contradict one another: %w", m.Generation, m.ID, m.Parent, m.Oldest.Generation, ErrFormat)
	}
	return cmp.Or(
		ascending("blocks", m.Blocks, Block.BlockID, compareBlocks),
		ascending("consumed", m.Consumed, func(c Consumed) SegmentID { return c.SegmentID }, compareSegments),
		ascending("retired", m.Retired, func(r Retired) BlockID { return r.BlockID }, compareBlocks),
		ascending("tombstones", m.Tombstones, func(t Tombstone) ulid.ULID { return t.ID }, ulid.ULID.Compare),
		ascending("sealed", m.Sealed, func(s Sealed) SegmentID { return s.SegmentID }, compareSegments),
		ascending("splits", m.Splits, func(s Split) ulid.ULID { return s.ID }, ulid.ULID.Compare),
		ascending("imports", m.Imports, func(x Import) ulid.ULID { return x.Block }, ulid.ULID.Compare),
		m.validateEntries(),
	)
}

func (m Manifest) validateEntries() error {
	for _, b := range m.Blocks {
		if err := b.validate(); err != nil {
			return err
		}
	}
	for i, t := range m.Tombstones {
		if err := t.validate(); err != nil {
			return err
		}
		if i > 0 && t.QueuedThrough < m.Tombstones[i-1].QueuedThrough {
			return fmt.Errorf("tombstone %s covers less of the queue than the one before it: %w", t.ID, ErrFormat)
		}
		if t.ID.Compare(m.LastTombstone) > 0 {
			return fmt.Errorf("tombstone %s is newer than the last, %s: %w", t.ID, m.LastTombstone, ErrFormat)
		}
	}
	for _, s := range m.Sealed {
		if s.By == (ulid.ULID{}) || s.By.Compare(m.LastTombstone) > 0 {
			return fmt.Errorf("segment %s is sealed by %s, the last tombstone is %s: %w", s.SegmentID, s.By, m.LastTombstone, ErrFormat)
		}
	}
	for _, s := range m.Splits {
		if err := s.validate(); err != nil {
			return err
		}
	}
	for _, x := range m.Imports {
		if err := x.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (b Block) validate() error {
	if b.ID == (ulid.ULID{}) || b.Level.WindowOf(int64(b.Window)) != b.Window || !b.Slice.valid() {
		return fmt.Errorf("block %s, slice %d of %d: %w", b.BlockID(), b.Slice.Index, b.Slice.Of, ErrInvalid)
	}
	if b.MinT <= b.MaxT && (b.MinT < int64(b.Window) || b.MaxT >= b.Level.End(b.Window)) {
		return fmt.Errorf("block %s: times %d to %d ms are not in its window: %w", b.BlockID(), b.MinT, b.MaxT, ErrInvalid)
	}
	if b.Series < 0 || b.Samples < 0 || b.Bytes < 0 || b.empty() {
		return fmt.Errorf("block %s: %d series, %d samples, %d bytes: %w", b.BlockID(), b.Series, b.Samples, b.Bytes, ErrInvalid)
	}
	return nil
}

func (t Tombstone) validate() error {
	if len(t.Matchers) == 0 || t.MinT > t.MaxT {
		return fmt.Errorf("tombstone with %d matchers from %d to %d ms: %w", len(t.Matchers), t.MinT, t.MaxT, ErrInvalid)
	}
	for _, m := range t.Matchers {
		if !model.UTF8Validation.IsValidLabelName(m.Name) {
			return fmt.Errorf("tombstone with a matcher of label %q: %w", m.Name, ErrInvalid)
		}
	}
	_, err := t.LabelMatchers()
	return err
}

func (s Split) validate() error {
	if s.ID == (ulid.ULID{}) || s.Of < 2 || s.Of > MaxSlices || len(s.Done) >= s.Of || s.Sources.Len() == 0 {
		return fmt.Errorf("split %s of %d sources with %d of %d slices (at most %d) done: %w", s.ID, s.Sources.Len(), len(s.Done), s.Of, MaxSlices, ErrInvalid)
	}
	if s.Level.WindowOf(int64(s.Window)) != s.Window {
		return fmt.Errorf("split %s: %s is no window of level %s: %w", s.ID, s.Window, s.Level, ErrInvalid)
	}
	if err := cmp.Or(
		ascending("sources", s.Sources.Segments, func(id SegmentID) SegmentID { return id }, compareSegments),
		ascending("sources", s.Sources.Blocks, func(id BlockID) BlockID { return id }, compareBlocks),
		s.Sources.within(Block{Level: s.Level, Window: s.Window, ID: s.ID}),
		ascending("slices", s.Done, func(b Block) int { return b.Slice.Index }, cmp.Compare[int]),
	); err != nil {
		return err
	}
	for _, b := range s.Done {
		if b.Slice.Of != s.Of || b.Level != s.Level || b.Window != s.Window {
			return fmt.Errorf("split %s: slice %s of %s: %w", s.ID, b.Slice, b.BlockID(), ErrInvalid)
		}
		if err := b.validate(); err != nil && !b.empty() {
			return err
		}
	}
	return nil
}

// ascending checks that a list is sorted and holds no entry twice.
func ascending[E, K any](list string, s []E, id func(E) K, compare func(a, b K) int) error {
	for i := 1; i < len(s); i++ {
		if a, b := id(s[i-1]), id(s[i]); compare(a, b) >= 0 {
			return fmt.Errorf("%s are not sorted, or one is there twice, at %v: %w", list, b, ErrFormat)
		}
	}
	return nil
}

// twins returns the identity that two neighbours share.
func twins[E any](s []E, id func(E) BlockID) (BlockID, bool) {
	for i := 1; i < len(s); i++ {
		if id(s[i-1]) == id(s[i]) {
			return id(s[i]), true
		}
	}
	return BlockID{}, false
}
