package source

import (
	"cmp"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Ref names a live object of a snapshot: a segment, or a block with its several files.
type Ref struct {
	rank           ulid.ULID // of equal (series, timestamp), the sample of the object with the highest rank counts
	DeletesThrough ulid.ULID // the tombstones above this one apply to it
	Series         string    // key of the file that has a row per series: the segment itself, or the block's series table
	Size           int64     // bytes of a segment; 0 for a block
	Block          key.Block // zero for a segment
	Lists          string    // name of a segment's decoded samples in caches
	from, upto     int64     // ms, inclusive: by its key or the manifest, no sample is outside
}

// IsBlock reports whether the object is a block.
func (o *Ref) IsBlock() bool { return o.Block.Tenant != "" }

// Name is the key of a segment, or the prefix of a block's files.
func (o *Ref) Name() string {
	if o.IsBlock() {
		return o.Block.Prefix()
	}
	return o.Series
}

// Refs returns the live objects of a snapshot by rank, the lowest first.
func Refs(snap catalog.Snapshot) []Ref {
	out := make([]Ref, 0, len(snap.Segments)+len(snap.Blocks))
	for _, s := range snap.Segments {
		name := s.String()
		out = append(out, Ref{
			rank: s.Rank, DeletesThrough: s.DeletesThrough, Series: name, Size: s.Size, Lists: index.PartKey("samples", name, ""),
			from: int64(s.Window), upto: s.Window.End() - 1,
		})
	}
	for _, b := range snap.Blocks {
		k := b.Key(snap.Tenant)
		o := Ref{rank: b.Rank, DeletesThrough: b.DeletesThrough, Series: k.File(block.SeriesFile), Block: k}
		o.from, o.upto = b.Times()
		out = append(out, o)
	}
	// Objects of one rank never hold the same series and time. Their keys make the order the same
	// in every process.
	slices.SortFunc(out, func(a, b Ref) int {
		return cmp.Or(a.rank.Compare(b.rank), cmp.Compare(a.Series, b.Series))
	})
	return out
}

// Object is an object with its footer. It is small, since each read makes a list of its objects.
type Object struct {
	*Ref
	Footer *Footer
}

// Bytes is the size of all files of an object.
func (l *Object) Bytes() int64 {
	if l.Footer.Meta != nil {
		return l.Footer.Meta.Bytes()
	}
	return l.Size
}
