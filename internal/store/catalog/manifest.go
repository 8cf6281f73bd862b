package catalog

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
)

// ManifestVersion is the version of the manifests that this package writes. Version 1 is read, too.
const ManifestVersion = 2

// MaxJobAge is how long after its beginning a job may commit: a block whose ULID is older is
// refused. A block that is older by a margin for differing clocks is no work in progress, so the
// delays of garbage collection must be longer.
const MaxJobAge = 15 * time.Minute

// Errors. Use errors.Is.
var (
	// ErrConflict: the manifest has changed, so that the change does not apply to it. The caller
	// drops the work behind the change and leaves its objects to garbage collection.
	ErrConflict = errors.New("conflict with the manifest")
	// ErrInvalid: the change could apply to no manifest.
	ErrInvalid = errors.New("invalid change of the manifest")
	// ErrFormat: bytes that are not a manifest.
	ErrFormat = errors.New("not a manifest")
	// ErrUnknownEffect: a commit may have taken effect or not, and history no longer shows which.
	ErrUnknownEffect = errors.New("effect of the commit is unknown")
	// ErrTooOld: the asked moment is before the oldest manifest that can still be read.
	ErrTooOld = errors.New("older than the readable history")
	// ErrUnsettled: a deletion took effect, and may still take effect on what is sent to the queue.
	ErrUnsettled = errors.New("the deletion took effect, but what is sent to the queue now may be deleted, too")
	// ErrRestored: an older manifest was put in the place of the newest one.
	ErrRestored = errors.New("an older manifest was restored")
)

// Manifest names the live blocks of a tenant and the segments that they replace. It is a value: no
// method changes it. All lists are sorted and have no duplicates.
type Manifest struct {
	Version       int       `json:"version"`
	Generation    uint64    `json:"generation"`     // 0: the tenant has no manifest; each commit adds 1
	ID            ulid.ULID `json:"id"`             // of the commit; its time is later than the parent's
	Parent        ulid.ULID `json:"parent"`         // ID of the manifest that this one replaced
	LastTombstone ulid.ULID `json:"last_tombstone"` // ID of the newest tombstone there ever was
	Oldest        Floor     `json:"oldest"`         // the oldest manifest that may be read as history

	Blocks     []Block     `json:"blocks,omitempty"`     // live; by window, level, id
	Consumed   []Consumed  `json:"consumed,omitempty"`   // segments that are not live, with or without object; by window, id
	Retired    []Retired   `json:"retired,omitempty"`    // blocks that will never be live again; by window, level, id
	Tombstones []Tombstone `json:"tombstones,omitempty"` // by id
	Sealed     []Sealed    `json:"sealed,omitempty"`     // live segments that a tombstone covers; by window, id
	Splits     []Split     `json:"splits,omitempty"`     // by id
	Imports    []Import    `json:"imports,omitempty"`    // committed imports whose records may not be written yet; by block
}

// Point names a manifest of a tenant's history.
type Point struct {
	Generation uint64    `json:"generation"`
	ID         ulid.ULID `json:"id"`
}

// Floor is where the readable history begins.
type Floor struct {
	Point
	At     int64  `json:"at,omitempty"`     // ms, store's clock: when it was raised, or a little later
	Raised uint64 `json:"raised,omitempty"` // generation in which it was raised
}

// Sealed is a live segment that was there when a deletion listed its windows. That deletion and all
// later ones cover it.
type Sealed struct {
	SegmentID
	By ulid.ULID `json:"by"` // the first tombstone that applies
}

// Block is a live block, or a finished slice of a split.
type Block struct {
	Level          key.Level  `json:"level"`
	Window         key.Window `json:"window"`
	ID             ulid.ULID  `json:"id"`              // time: when the job that made it began
	Rank           ulid.ULID  `json:"rank"`            // the rank of its newest source
	DeletesThrough ulid.ULID  `json:"deletes_through"` // tombstones up to this one are applied to it
	MinT           int64      `json:"min_t"`           // ms, over all samples and exemplars in it
	MaxT           int64      `json:"max_t"`           // ms, inclusive; below MinT in a block of metadata alone
	Series         int64      `json:"series"`
	Samples        int64      `json:"samples"` // float and histogram samples
	Bytes          int64      `json:"bytes"`   // of all its objects
	Slice          Slice      `json:"slice,omitzero"`
}

// BlockID returns the block's identity.
func (b Block) BlockID() BlockID { return BlockID{Level: b.Level, Window: b.Window, ID: b.ID} }

// Key returns the block's key.
func (b Block) Key(tenant string) key.Block { return b.BlockID().Key(tenant) }

// empty reports whether b stands for a slice without objects.
func (b Block) empty() bool { return b.Series == 0 && b.Samples == 0 && b.Bytes == 0 }

// Times returns the range (ms, inclusive) outside of which b holds nothing. Metadata belongs to the
// whole window.
func (b Block) Times() (from, upto int64) {
	if b.MaxT < b.MinT {
		return int64(b.Window), b.Level.End(b.Window) - 1
	}
	return b.MinT, b.MaxT
}

// overlaps reports whether b may hold something of [mint, maxt] (ms).
func (b Block) overlaps(mint, maxt int64) bool {
	from, upto := b.Times()
	return from <= maxt && upto >= mint
}

// BlockID identifies a block of a tenant.
type BlockID struct {
	Level  key.Level  `json:"level"`
	Window key.Window `json:"window"`
	ID     ulid.ULID  `json:"id"`
}

// Key returns the block's key.
func (b BlockID) Key(tenant string) key.Block {
	return key.Block{Tenant: tenant, Level: b.Level, Window: b.Window, ID: b.ID}
}

// String returns the block's key without the tenant's prefix.
func (b BlockID) String() string { return b.Key("").String() }

// SegmentID identifies a segment of a tenant.
type SegmentID struct {
	Window key.Window `json:"window"`
	ID     ulid.ULID  `json:"id"`
	Queued bool       `json:"queued,omitempty"` // of the write queue; ID has the send time of its newest message
}

// SegmentIDOf returns the identity of a segment among those of its tenant.
func SegmentIDOf(s key.Segment) SegmentID {
	return SegmentID{Window: s.Window, ID: s.ID, Queued: s.Queued}
}

// Key returns the segment's key.
func (s SegmentID) Key(tenant string) key.Segment {
	return key.Segment{Tenant: tenant, Window: s.Window, ID: s.ID, Queued: s.Queued}
}

// String returns window and name as they stand in keys.
func (s SegmentID) String() string { return s.Window.String() + "/" + s.Key("").Name() }

// Consumed is a segment whose samples are in a block, deleted or expired.
type Consumed struct {
	SegmentID
	At         int64  `json:"at"`             // ms: when the manifest that consumed it was committed, or a little later
	Generation uint64 `json:"generation"`     // of that manifest
	Gone       uint64 `json:"gone,omitempty"` // generation of the first manifest without its object; 0: may be there
}

// Retired is a block that was live, or an orphan that will never be live.
type Retired struct {
	BlockID
	At         int64  `json:"at"` // as in Consumed
	Generation uint64 `json:"generation"`
	Gone       uint64 `json:"gone,omitempty"`
}

// Sources are the objects that a job reads and replaces.
type Sources struct {
	Segments []SegmentID `json:"segments,omitempty"` // by window, id
	Blocks   []BlockID   `json:"blocks,omitempty"`   // by window, level, id
}

// Split is a job that is done in slices of the series, one by one. Its sources stay live until the
// last slice is done, and no other job may take them.
type Split struct {
	ID      ulid.ULID  `json:"id"` // time: when the job was planned
	Level   key.Level  `json:"level"`
	Window  key.Window `json:"window"`
	Of      int        `json:"of"` // number of slices
	Sources Sources    `json:"sources"`
	Done    []Block    `json:"done,omitempty"` // by slice; not live yet. A slice without series and bytes has no objects.
}

// Empty returns the manifest of a tenant that has none.
func Empty() Manifest { return Manifest{Version: ManifestVersion} }

// Time returns when m was committed, by the store's clock as its committer knew it (ms precision).
func (m Manifest) Time() time.Time { return ulid.Time(m.ID.Time()) }

// point names m.
func (m Manifest) point() Point { return Point{Generation: m.Generation, ID: m.ID} }

// clone returns m with lists of its own. Entries are never changed in place by their inner lists.
func (m Manifest) clone() Manifest {
	m.Blocks, m.Consumed, m.Retired = slices.Clone(m.Blocks), slices.Clone(m.Consumed), slices.Clone(m.Retired)
	m.Tombstones, m.Sealed, m.Splits = slices.Clone(m.Tombstones), slices.Clone(m.Sealed), slices.Clone(m.Splits)
	m.Imports = slices.Clone(m.Imports)
	return m
}

// at is the time of a change in ms: now, by the store's clock, but later than m.
func (m Manifest) at(now time.Time) int64 { return max(now.UnixMilli(), int64(m.ID.Time())+1) }

func (m *Manifest) sort() {
	slices.SortFunc(m.Blocks, func(a, b Block) int { return compareBlocks(a.BlockID(), b.BlockID()) })
	slices.SortFunc(m.Consumed, func(a, b Consumed) int { return compareSegments(a.SegmentID, b.SegmentID) })
	slices.SortFunc(m.Retired, func(a, b Retired) int { return compareBlocks(a.BlockID, b.BlockID) })
	slices.SortFunc(m.Tombstones, func(a, b Tombstone) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(m.Sealed, func(a, b Sealed) int { return compareSegments(a.SegmentID, b.SegmentID) })
	slices.SortFunc(m.Splits, func(a, b Split) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(m.Imports, func(a, b Import) int { return a.Block.Compare(b.Block) })
}

func compareSegments(a, b SegmentID) int {
	order := cmp.Or(cmp.Compare(a.Window, b.Window), a.ID.Compare(b.ID))
	switch {
	case order != 0 || a.Queued == b.Queued:
		return order
	case b.Queued:
		return -1
	}
	return 1
}

func compareBlocks(a, b BlockID) int {
	return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.Level, b.Level), a.ID.Compare(b.ID))
}
