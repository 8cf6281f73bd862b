package catalog

import (
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
)

// Import says which inputs from outside of the store a block holds, for a part of the series in one
// window. A manifest has it from the commit of the block until the record of the import is in the
// store (schemas/keys.md). So at every moment one of the two shows what was imported, whatever
// became of the block.
type Import struct {
	Block          ulid.ULID  `json:"block"` // zero, in a record only: there was nothing to write
	Level          key.Level  `json:"level"`
	Window         key.Window `json:"window"`
	Slice          Slice      `json:"slice,omitzero"`
	Inputs         []string   `json:"inputs"`                   // identify the samples; sorted, at least one
	DeletesThrough ulid.ULID  `json:"deletes_through,omitzero"` // of the block when it was added
	Series         int64      `json:"series"`
	Samples        int64      `json:"samples"`
	Bytes          int64      `json:"bytes"`
}

// ImportOf returns the import of inputs, which are sorted, that b is.
func ImportOf(b Block, inputs []string) Import {
	return Import{
		Block: b.ID, Level: b.Level, Window: b.Window, Slice: b.Slice, Inputs: inputs,
		DeletesThrough: b.DeletesThrough, Series: b.Series, Samples: b.Samples, Bytes: b.Bytes,
	}
}

// Overlaps reports whether the window shares a time with that of another level.
func (x Import) Overlaps(l key.Level, w key.Window) bool {
	return int64(x.Window) < l.End(w) && int64(w) < x.Level.End(x.Window)
}

// repeats reports whether one of the inputs is in both, for a time and a series.
func (x Import) repeats(y Import) bool {
	return x.Overlaps(y.Level, y.Window) && x.Slice.Shares(y.Slice) &&
		slices.ContainsFunc(x.Inputs, func(id string) bool { return slices.Contains(y.Inputs, id) })
}

// Add makes a block live that replaces nothing: its samples are those of inputs from outside of the
// store, which are sorted. Tombstones up to b.DeletesThrough do not apply to it. The records of the
// imports recorded are in the store, so the manifest need not name these any more. It conflicts if
//
//   - the manifest has an import of one of the inputs that shares a time of the window and a part
//     of the slice;
//   - the block is known already, or its job began more than MaxJobAge ago.
func (m Manifest) Add(now time.Time, b Block, inputs []string, recorded []ulid.ULID) (Manifest, error) {
	if err := b.validate(); err != nil {
		return Manifest{}, err
	}
	own := ImportOf(b, inputs)
	if err := own.validate(); err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	next := m.Recorded(recorded)
	for _, x := range next.Imports {
		if x.repeats(own) {
			return Manifest{}, fmt.Errorf("add block %s: block %s has the same: %w", b.BlockID(), x.Block, ErrConflict)
		}
	}
	if m.known(b.BlockID()) {
		return Manifest{}, fmt.Errorf("add block %s: it is live, retired or part of a split: %w", b.BlockID(), ErrConflict)
	}
	if err := m.young(now, b.ID); err != nil {
		return Manifest{}, fmt.Errorf("add block %s: %w", b.BlockID(), err)
	}
	if b.DeletesThrough.Compare(m.LastTombstone) > 0 {
		return Manifest{}, fmt.Errorf("add block %s: it has tombstones of the future applied: %w", b.BlockID(), ErrInvalid)
	}
	next.Blocks, next.Imports = append(next.Blocks, b), append(next.Imports, own)
	next.sort()
	return next, nil
}

// Recorded removes the imports of these blocks, whose records are in the store. It ignores unknown
// ones.
func (m Manifest) Recorded(blocks []ulid.ULID) Manifest {
	next := m.clone()
	next.Imports = slices.DeleteFunc(next.Imports, func(x Import) bool { return slices.Contains(blocks, x.Block) })
	return next
}

func (x Import) validate() error {
	if x.Block == (ulid.ULID{}) || x.Level.WindowOf(int64(x.Window)) != x.Window || !x.Slice.valid() {
		return fmt.Errorf("import of block %s: level %s, window %s, slice %s: %w", x.Block, x.Level, x.Window, x.Slice, ErrFormat)
	}
	if len(x.Inputs) == 0 || !slices.IsSorted(x.Inputs) {
		return fmt.Errorf("import of block %s: %d inputs, want at least one, sorted: %w", x.Block, len(x.Inputs), ErrFormat)
	}
	return nil
}
