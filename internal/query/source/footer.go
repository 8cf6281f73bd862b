package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"unique"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Footer is what a planner knows of an object without reading a column. Senders repeat their
// metadata in every segment, so all footers share one copy of it.
type Footer struct {
	segment.Info // of a block: Rows, Samples, times and label names; without Metadata
	Descriptions []unique.Handle[segment.Metadata]
	Meta         *block.Meta // nil for a segment
	// Number identifies the object in memory, in the order in which footers were read. An object
	// whose footer is read again gets another number.
	Number uint32

	names unique.Handle[string] // equal for equal label names
	bytes int64                 // of memory, about
}

// Bytes implements index.Sized.
func (f *Footer) Bytes() int64 { return f.bytes }

// MayMatch reports whether an object can hold a series that matches one of sets, judging by its
// label names. No sets match everything.
func (f *Footer) MayMatch(sets [][]*labels.Matcher) bool {
	refuses := func(m *labels.Matcher) bool {
		return m.Name != model.MetricNameLabel && !m.Matches("") && !f.HasLabel(m.Name)
	}
	for _, ms := range sets {
		if !slices.ContainsFunc(ms, refuses) {
			return true
		}
	}
	return len(sets) == 0
}

// HasLabel reports whether a series of an object can have a label.
func (f *Footer) HasLabel(name string) bool {
	return contains(f.LabelColumns, name) || contains(f.MapNames, name)
}

// Names returns a key of the label names: MayMatch answers the same for objects of equal keys.
func (f *Footer) Names() unique.Handle[string] { return f.names }

// identified sets the key of the label names.
func (f *Footer) identified() *Footer {
	f.names = unique.Make(strings.Join(f.LabelColumns, "\xff") + "\xff\xff" + strings.Join(f.MapNames, "\xff"))
	return f
}

// contains searches a sorted slice.
func contains(sorted []string, s string) bool {
	_, ok := slices.BinarySearch(sorted, s)
	return ok
}

// Estimate is about how many of n samples of an object are in [mint, maxt] (ms).
func (f *Footer) Estimate(n, mint, maxt int64) int64 {
	span := max(1, f.MaxT-f.MinT+1)
	return int64(float64(n) * float64(max(0, min(maxt, f.MaxT)-max(mint, f.MinT)+1)) / float64(span))
}

// WholeBytes is the size up to which a remote segment is fetched as a whole to read its footer: the
// columns, which are read next, come with it.
const WholeBytes = fetch.DefaultRequestBytes

// Footer returns the footer of an object, from the cache or from the object. Concurrent calls for
// one object share a load. Objects are immutable, so cached footers never expire.
func (f *Files) footer(ctx context.Context, o *Ref) (*Footer, error) {
	if ft := f.storedFooter(o, nil); ft != nil {
		return ft, nil
	}
	ft, hit, err := index.Get(ctx, f.footers, o.Series, func() (*Footer, error) {
		f.metrics.CountLookup("footer", false)
		load := f.segmentFooter
		if o.IsBlock() {
			load = f.blockFooter
		}
		ft, err := load(ctx, o)
		if err != nil {
			return nil, o.Broken(err)
		}
		ft.Number = f.numbers.Add(1)
		return ft, nil
	})
	if hit {
		f.metrics.CountLookup("footer", true)
	}
	return ft, err
}

// blockFooter reads a block's meta.json. The disk cache is bypassed: what is decoded stays in
// memory.
func (f *Files) blockFooter(ctx context.Context, o *Ref) (*Footer, error) {
	key := o.Block.File(block.MetaFile)
	var b []byte
	var m block.Meta
	var err error
	if f.Local() {
		b, err = os.ReadFile(f.dir.LocalPath(key))
		err = gone(key, err)
	} else {
		b, _, err = objstore.ReadAll(ctx, f.store, key)
	}
	if err == nil {
		m, err = block.ReadMeta(b)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	ft := &Footer{
		Info: segment.Info{
			Rows: m.Series, Samples: m.Floats + m.Hists, MinT: m.MinT, MaxT: m.MaxT,
			LabelColumns: m.LabelColumns, MapNames: m.MapNames, HasExemplars: m.Exemplars > 0,
		},
		Meta: &m, bytes: int64(400 + len(key) + len(b)),
	}
	return ft.identified(), nil
}

func (f *Files) segmentFooter(ctx context.Context, o *Ref) (*Footer, error) {
	info, err := f.segmentInfo(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("read footer of segment %s: %w", o.Series, err)
	}
	return newSegmentFooter(o.Series, info).identified(), nil
}

// storedFooter returns the footer of a segment that this process has stored and nobody has read
// since, and adds it to the cache; nil if the object is none. before is a footer that may have
// equal label names; nil: there is none.
func (f *Files) storedFooter(o *Ref, before *Footer) *Footer {
	if o.IsBlock() {
		return nil
	}
	info, known := f.stored.TakeFooter(o.Series, o.Size)
	if !known {
		return nil
	}
	f.metrics.CountLookup("footer", false)
	ft := newSegmentFooter(o.Series, info)
	if ft.Number = f.numbers.Add(1); before != nil && slices.Equal(ft.LabelColumns, before.LabelColumns) && slices.Equal(ft.MapNames, before.MapNames) {
		ft.names = before.names
	} else {
		ft.identified()
	}
	f.footers.Add(o.Series, ft)
	return ft
}

func newSegmentFooter(key string, info segment.Info) *Footer {
	ft := &Footer{Info: info, Descriptions: make([]unique.Handle[segment.Metadata], len(info.Metadata))}
	for i, m := range info.Metadata {
		ft.Descriptions[i] = unique.Make(m)
	}
	ft.Metadata = nil
	ft.bytes = int64(400 + len(key) + 8*len(ft.Descriptions) + len(ft.Values))
	for _, names := range [][]string{ft.LabelColumns, ft.MapNames} {
		for _, s := range names {
			ft.bytes += int64(16 + len(s))
		}
	}
	return ft
}

func (f *Files) segmentInfo(ctx context.Context, o *Ref) (info segment.Info, err error) {
	if !f.Local() && o.Size > WholeBytes {
		return segment.ReadInfo(objstore.ReaderAt(ctx, f.store, o.Series), o.Size)
	}
	in := f.Open(ctx, o.Series, o.Size)
	err = in.Prefetch([][2]int64{{0, o.Size}})
	if err == nil {
		info, err = segment.ReadInfo(in, o.Size)
	}
	return info, errors.Join(err, in.Close())
}

// Metas returns the meta.json of the blocks of a snapshot that hold most samples, at most n of
// them. Callers must not change them. Errors are those of footers.
func (f *Files) Metas(ctx context.Context, snap catalog.Snapshot, n int) ([]*block.Meta, error) {
	snap.Segments, snap.Blocks = nil, slices.Clone(snap.Blocks)
	slices.SortStableFunc(snap.Blocks, func(a, b catalog.Block) int { return cmp.Compare(b.Samples, a.Samples) })
	snap.Blocks = snap.Blocks[:min(n, len(snap.Blocks))]
	objs, err := f.locate(ctx, Refs(snap))
	if err != nil {
		return nil, err
	}
	out := make([]*block.Meta, len(objs))
	for i := range objs {
		out[i] = objs[i].Footer.Meta
	}
	return out, nil
}

// Span returns the times (ms) of the first and the last sample of a snapshot; last is below first
// if there is none. The manifest has the times of blocks. Of segments it reads footers: those of
// the n oldest in the first window, and of the n newest in the last window. It fails if a footer
// cannot be read.
func (f *Files) Span(ctx context.Context, snap catalog.Snapshot, n int) (first, last int64, err error) {
	first, last = math.MaxInt64, math.MinInt64
	see := func(mint, maxt int64) {
		if mint <= maxt {
			first, last = min(first, mint), max(last, maxt)
		}
	}
	for _, b := range snap.Blocks {
		see(b.MinT, b.MaxT)
	}
	byWindow := slices.Clone(snap.Segments)
	slices.SortStableFunc(byWindow, func(a, b catalog.SegmentRef) int { return cmp.Compare(a.Window, b.Window) })
	snap.Segments, snap.Blocks = nil, nil
	for i, s := range byWindow {
		ofFirst := s.Window == byWindow[0].Window && i < n
		ofLast := s.Window == byWindow[len(byWindow)-1].Window && i >= len(byWindow)-n
		if ofFirst || ofLast {
			snap.Segments = append(snap.Segments, s)
		}
	}
	objs, err := f.locate(ctx, Refs(snap))
	for _, o := range objs {
		if err == nil {
			see(o.Footer.MinT, o.Footer.MaxT)
		}
	}
	return first, last, err
}
