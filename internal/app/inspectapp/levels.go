package inspectapp

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	// concurrency bounds the requests that are in flight at once.
	concurrency = 16
	// maxMetaBytes bounds the bytes that are read of a meta.json.
	maxMetaBytes = 64 << 20
	segments     = "segment"
)

// readSegments sums up segments from their footers.
func (t *Tenant) readSegments(ctx context.Context, store objstore.Store, refs []catalog.SegmentRef) error {
	l := Level{Level: segments}
	var mu sync.Mutex
	err := telemetry.Each(ctx, concurrency, refs, func(ctx context.Context, _ int, ref catalog.SegmentRef) error {
		k := ref.String()
		info, err := segment.ReadInfo(objstore.ReaderAt(ctx, store, k), ref.Size)
		if err != nil {
			return fmt.Errorf("read segment %s: %w", k, err)
		}
		mu.Lock()
		defer mu.Unlock()
		l.add(info.Rows, info.Samples, size{bytes: ref.Size}, info.MinT, info.MaxT)
		return nil
	})
	t.Levels = []Level{l}
	return err
}

// readBlocks describes the live blocks, and computes their sums by level and by column. Sizes
// include meta.json.
func (t *Tenant) readBlocks(ctx context.Context, store objstore.Store, blocks []catalog.Block) error {
	blocks = slices.SortedFunc(slices.Values(blocks), func(a, b catalog.Block) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Window, b.Window), a.Rank.Compare(b.Rank), a.ID.Compare(b.ID))
	})
	columns, sizes := columnSizes{}, make([]size, len(blocks))
	var mu sync.Mutex
	err := telemetry.Each(ctx, concurrency, blocks, func(ctx context.Context, i int, b catalog.Block) error {
		k := b.Key(t.Tenant).File(block.MetaFile)
		raw, err := read(ctx, store, k)
		if err != nil {
			return fmt.Errorf("read %s: %w", k, err)
		}
		m, err := block.ReadMeta(raw)
		if err != nil {
			return fmt.Errorf("read %s: %w", k, err)
		}
		mu.Lock()
		defer mu.Unlock()
		sizes[i] = size{m.Bytes() + int64(len(raw)), columns.add(&m, int64(len(raw)))}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range blocks {
		b := &blocks[i]
		n := sizes[i]
		out := Block{
			Level: b.Level.String(), Window: moments(int64(b.Window)), ID: b.ID.String(), Prefix: b.Key(t.Tenant).Prefix(), Rank: b.Rank.String(),
			Series: b.Series, Samples: b.Samples, Bytes: n.bytes, RollupBytes: n.rollups,
		}
		if b.Slice.Of > 1 {
			out.Slice = fmt.Sprintf("%d/%d", b.Slice.Index+1, b.Slice.Of)
		}
		if b.MinT <= b.MaxT {
			first, last := moments(b.MinT), moments(b.MaxT)
			out.MinTime, out.MaxTime = &first, &last
		}
		t.Blocks = append(t.Blocks, out)
		if t.Levels[len(t.Levels)-1].Level != out.Level {
			t.Levels = append(t.Levels, Level{Level: out.Level})
		}
		t.Levels[len(t.Levels)-1].add(b.Series, b.Samples, n, b.MinT, b.MaxT)
	}
	t.Columns = columns.sorted()
	return nil
}

// size is that of an object or block, in bytes; rollups is the part of it that only repeats
// samples.
type size struct{ bytes, rollups int64 }

// add counts one object. maxT < minT means that it holds no samples.
func (l *Level) add(series, samples int64, n size, minT, maxT int64) {
	l.Objects++
	l.Series += series
	l.Samples += samples
	l.Bytes += n.bytes
	l.RollupBytes += n.rollups
	if minT > maxT {
		return
	}
	if first := moments(minT); l.MinTime == nil || first.Before(*l.MinTime) {
		l.MinTime = &first
	}
	if last := moments(maxT); l.MaxTime == nil || last.After(*l.MaxTime) {
		l.MaxTime = &last
	}
}

// read returns an object of at most maxMetaBytes.
func read(ctx context.Context, store objstore.Store, k string) (b []byte, err error) {
	body, obj, err := store.Get(ctx, k, 0, -1)
	if err != nil {
		return nil, err
	}
	defer body.Close() // read only: nothing to lose
	if obj.Size > maxMetaBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", obj.Size, maxMetaBytes)
	}
	return io.ReadAll(body)
}

// footer is the pseudo-column of the bytes of a Parquet file outside of its column chunks.
const footer = "footer"

// rollup is the kind of the files that hold downsamples.
const rollup = "rollup"

// kinds are the kinds of a block's files in the order of the report.
var kinds = []string{"samples", "histograms", "series", "exemplars", "metadata", rollup, "meta"}

// columnSizes adds up the bytes of columns over blocks.
type columnSizes map[Column]int64 // by Column without Bytes

// add counts the files of a block, those of samples and histograms by column, and returns the bytes
// of its rollups. metaBytes is the size of its meta.json, which does not name itself.
func (sizes columnSizes) add(m *block.Meta, metaBytes int64) (rollups int64) {
	sizes[Column{File: "meta"}] += metaBytes
	for _, c := range m.Columns() {
		switch c.File {
		case "samples", "histograms":
			sizes[Column{File: c.File, Column: cmp.Or(c.Column, footer)}] += c.Bytes
		case block.Rollups:
			sizes[Column{File: rollup}] += c.Bytes
			rollups += c.Bytes
		default:
			sizes[Column{File: c.File}] += c.Bytes
		}
	}
	return rollups
}

// sorted lists the columns by file and by their order in it.
func (sizes columnSizes) sorted() []Column {
	out := make([]Column, 0, len(sizes))
	for c, n := range sizes {
		c.Bytes = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Column) int {
		return cmp.Or(
			cmp.Compare(place(kinds, a.File), place(kinds, b.File)),
			cmp.Compare(a.File, b.File),
			cmp.Compare(place(block.Leaves(a.File), a.Column), place(block.Leaves(b.File), b.Column)),
		)
	})
	return out
}

// place is the index of name, or one beyond the last.
func place(names []string, name string) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	return len(names)
}
