package query

import (
	"cmp"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

// object is a live object of a snapshot: a segment, or a block with its several files.
type object struct {
	rank           ulid.ULID // of equal (series, timestamp), the sample of the object with the highest rank counts
	deletesThrough ulid.ULID // the tombstones above this one apply to it
	series         string    // key of the file that has a row per series: the segment itself, or the block's series table
	size           int64     // bytes of a segment; 0 for a block
	block          key.Block // zero for a segment
	from, upto     int64     // ms, inclusive: no sample of it is outside, by its key or the manifest
}

// isBlock says whether the object is a block.
func (o *object) isBlock() bool { return o.block.Tenant != "" }

// name is the key of a segment, or the prefix of a block's files.
func (o *object) name() string {
	if o.isBlock() {
		return o.block.Prefix()
	}
	return o.series
}

// objectsOf returns the live objects of a snapshot by rank, the lowest first.
func objectsOf(snap catalog.Snapshot) []object {
	out := make([]object, 0, len(snap.Segments)+len(snap.Blocks))
	for _, s := range snap.Segments {
		out = append(out, object{
			rank: s.Rank, deletesThrough: s.DeletesThrough, series: s.String(), size: s.Size,
			from: int64(s.Window), upto: s.Window.End() - 1,
		})
	}
	for _, b := range snap.Blocks {
		k := b.Key(snap.Tenant)
		o := object{rank: b.Rank, deletesThrough: b.DeletesThrough, series: k.File(block.SeriesFile), block: k, from: b.MinT, upto: b.MaxT}
		if b.MaxT < b.MinT { // metadata alone
			o.from, o.upto = int64(b.Window), b.Level.End(b.Window)-1
		}
		out = append(out, o)
	}
	// Objects of one rank never hold the same series and time; their keys only keep the order the same.
	slices.SortFunc(out, func(a, b object) int {
		return cmp.Or(a.rank.Compare(b.rank), cmp.Compare(a.series, b.series))
	})
	return out
}

// located is an object with what its footer or meta.json says.
type located struct {
	object
	footer *footer
}
