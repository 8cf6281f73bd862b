package catalog

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

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
