package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unique"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/segment"
)

// Footer is what a planner knows of an object without reading a column. Senders repeat their
// metadata in every segment, so all footers share one copy of it.
type Footer struct {
	segment.Info // of a block: Rows, Samples, times and label names; without Metadata
	Descriptions []unique.Handle[segment.Metadata]
	Meta         *block.Meta // nil for a segment
}

// MayMatch reports whether an object can hold a series that matches one of sets, judging by its
// label names. No sets match everything.
func (f *Footer) MayMatch(sets [][]*labels.Matcher) bool {
	refuses := func(m *labels.Matcher) bool {
		return m.Name != model.MetricNameLabel && !m.Matches("") && !contains(f.LabelColumns, m.Name) && !contains(f.MapNames, m.Name)
	}
	for _, ms := range sets {
		if !slices.ContainsFunc(ms, refuses) {
			return true
		}
	}
	return len(sets) == 0
}

// contains searches a sorted slice.
func contains(sorted []string, s string) bool {
	_, ok := slices.BinarySearch(sorted, s)
	return ok
}

// Estimate is about how many of n samples of an object are in [mint, maxt] (ms).
func (f *Footer) Estimate(n, mint, maxt int64) int64 {
	span := max(1, f.MaxT-f.MinT)
	return int64(float64(n) * float64(max(0, min(maxt, f.MaxT)-max(mint, f.MinT))) / float64(span))
}

// WholeBytes is the size up to which a remote segment is fetched as a whole to read its footer: the
// columns, which are read next, come with it.
const WholeBytes = fetch.DefaultRequestBytes

// Footer returns the footer of an object, from the cache or from the object. Concurrent calls for
// one object share a load. Objects are immutable, so cached footers never expire.
func (f *Files) footer(ctx context.Context, o *Ref) (*Footer, error) {
	if ft := f.known(o.Series); ft != nil {
		f.metrics.CountLookup("footer", true)
		return ft, nil
	}
	return f.loads.Do(ctx, o.Series, func() (*Footer, error) {
		if ft := f.known(o.Series); ft != nil {
			return ft, nil
		}
		f.metrics.CountLookup("footer", false)
		load := f.segmentFooter
		if o.IsBlock() {
			load = f.blockFooter
		}
		ft, cost, err := load(ctx, o)
		if err != nil {
			return nil, o.Broken(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.footers.Add(o.Series, ft, cost)
		f.footers.Evict(0)
		return ft, nil
	})
}

// known returns the footer that is cached under a key, nil if none is.
func (f *Files) known(key string) *Footer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.footers.Get(key); e != nil {
		return e.Value
	}
	return nil
}

// blockFooter reads a block's meta.json and estimates the memory of its footer in bytes. The disk
// cache is bypassed: what is decoded stays in memory.
func (f *Files) blockFooter(ctx context.Context, o *Ref) (*Footer, int64, error) {
	key := o.Block.File(block.MetaFile)
	var b []byte
	var m block.Meta
	var err error
	if f.inPlace(key) {
		b, err = os.ReadFile(f.dir.LocalPath(key))
		err = gone(key, err)
	} else {
		var body io.ReadCloser
		if body, _, err = f.store.Get(ctx, key, 0, -1); err == nil {
			b, err = io.ReadAll(body)
			err = errors.Join(err, body.Close())
		}
	}
	if err == nil {
		m, err = block.ReadMeta(b)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", key, err)
	}
	ft := &Footer{
		Info: segment.Info{
			Rows: m.Series, Samples: m.Floats + m.Hists, MinT: m.MinT, MaxT: m.MaxT,
			LabelColumns: m.LabelColumns, MapNames: m.MapNames, HasExemplars: m.Exemplars > 0,
		},
		Meta: &m,
	}
	return ft, int64(400 + 2*len(key) + len(b)), nil
}

// segmentFooter reads a segment's footer and estimates its memory in bytes.
func (f *Files) segmentFooter(ctx context.Context, o *Ref) (*Footer, int64, error) {
	info, err := f.segmentInfo(ctx, o)
	if err != nil {
		return nil, 0, fmt.Errorf("read footer of segment %s: %w", o.Series, err)
	}
	ft := &Footer{Info: info, Descriptions: make([]unique.Handle[segment.Metadata], len(info.Metadata))}
	for i, m := range info.Metadata {
		ft.Descriptions[i] = unique.Make(m)
	}
	ft.Metadata = nil
	n := int64(400+2*len(o.Series)) + 8*int64(len(ft.Descriptions))
	for _, names := range [][]string{ft.LabelColumns, ft.MapNames} {
		for _, s := range names {
			n += int64(16 + len(s))
		}
	}
	return ft, n, nil
}

func (f *Files) segmentInfo(ctx context.Context, o *Ref) (segment.Info, error) {
	if !f.inPlace(o.Series) && o.Size > WholeBytes {
		return segment.ReadInfo(&storeReader{ctx, f.store, o.Series}, o.Size)
	}
	path, release, err := f.whole(ctx, o.Series, o.Size)
	if err != nil {
		return segment.Info{}, err
	}
	defer release()
	file, err := os.Open(path)
	if err != nil {
		return segment.Info{}, gone(o.Series, err)
	}
	info, err := segment.ReadInfo(file, o.Size)
	return info, errors.Join(err, file.Close())
}

// storeReader reads ranges of an object.
type storeReader struct {
	ctx   context.Context
	store objstore.Store
	key   string
}

// ReadAt implements io.ReaderAt with one Get per call.
func (r *storeReader) ReadAt(p []byte, off int64) (int, error) {
	body, _, err := r.store.Get(r.ctx, r.key, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(body, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, errors.Join(err, body.Close())
}
