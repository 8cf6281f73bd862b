package block

import (
	"fmt"
	"unsafe"

	"github.com/parquet-go/parquet-go/format"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/segment"
)

// items reads rows of a time and a byte string. The cursors of histograms and exemplars use it.
type items struct {
	groups groups
	skip   int64

	ts    []int64 // of the current row group
	blobs []string
	pos   int
}

// Columns of items.
const (
	itemTS = iota
	itemBlob
	itemValue
)

// Skip steps over the next n rows. Row groups that are skipped as a whole are not read.
func (c *items) Skip(n int64) {
	here := min(n, int64(len(c.ts)-c.pos))
	c.pos += int(here)
	c.skip += n - here
}

// fill loads the next row group if the current one has no row left, and then calls loaded.
func (c *items) fill(loaded func() error) error {
	for c.pos == len(c.ts) {
		c.ts, c.pos = c.ts[:0], 0
		rows, err := c.groups.seek(&c.skip)
		if err != nil {
			return err
		}
		if c.ts, err = c.groups.int64s(c.ts, itemTS); err != nil {
			return err
		}
		if c.blobs, err = c.groups.blobs(c.blobs[:0], itemBlob); err != nil {
			return err
		}
		if int64(len(c.ts)) != rows || int64(len(c.blobs)) != rows {
			return c.groups.open.fail(fmt.Errorf("%w: columns are not aligned", ErrFormat))
		}
		if err := loaded(); err != nil {
			return err
		}
		c.pos, c.skip = int(c.skip), 0
	}
	return nil
}

// HistCursor reads the native histograms of a block in block order. It keeps one row group in
// memory and belongs to one goroutine. It cannot be used after an error.
type HistCursor struct{ items }

// Hists returns a cursor at the first native histogram.
func (r *Reader) Hists() *HistCursor {
	return &HistCursor{items{groups: groups{
		r: r, files: r.meta.numbered(HistogramsFile), columns: []column{{segment.ColTS, format.Int64}, {segment.ColHist, format.ByteArray}},
	}}}
}

// Next appends the next n histograms to dst. Errors: ErrFormat, also if the block has fewer, and
// those of the Source.
func (c *HistCursor) Next(n int64, dst []segment.Hist) ([]segment.Hist, error) {
	for ; n > 0; n-- {
		if err := c.fill(func() error { return nil }); err != nil {
			return nil, err
		}
		blob := c.blobs[c.pos]
		h, err := segment.DecodeHist(unsafe.Slice(unsafe.StringData(blob), len(blob)))
		if err == nil && h.T != c.ts[c.pos] {
			err = fmt.Errorf("histogram of the row at %d ms has the timestamp %d ms", c.ts[c.pos], h.T)
		}
		if err != nil {
			return nil, c.groups.open.fail(fmt.Errorf("%w: %w", ErrFormat, err))
		}
		dst = append(dst, h)
		c.pos++
	}
	return dst, nil
}

// ExemplarCursor reads the exemplars of a block in block order. It keeps one row group in memory
// and belongs to one goroutine. It cannot be used after an error.
type ExemplarCursor struct {
	items
	values []float64
}

// Exemplars returns a cursor at the first exemplar.
func (r *Reader) Exemplars() *ExemplarCursor {
	return &ExemplarCursor{items: items{groups: groups{
		r: r, files: r.meta.one(ExemplarsFile),
		columns: []column{{segment.ColTS, format.Int64}, {segment.ColLabels, format.ByteArray}, {segment.ColValue, format.Double}},
	}}}
}

// Next appends the next n exemplars to dst. Errors: ErrFormat, also if the block has fewer, and
// those of the Source.
func (c *ExemplarCursor) Next(n int64, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error) {
	for ; n > 0; n-- {
		if err := c.fill(c.loadValues); err != nil {
			return nil, err
		}
		l, err := segment.DecodeExemplarLabels([]byte(c.blobs[c.pos]))
		if err != nil {
			return nil, c.groups.open.fail(fmt.Errorf("%w: %w", ErrFormat, err))
		}
		dst = append(dst, exemplar.Exemplar{Labels: l, Value: c.values[c.pos], Ts: c.ts[c.pos], HasTs: true})
		c.pos++
	}
	return dst, nil
}

func (c *ExemplarCursor) loadValues() (err error) {
	if c.values, err = c.groups.doubles(c.values[:0], itemValue); err != nil {
		return err
	}
	if len(c.values) != len(c.ts) {
		return c.groups.open.fail(fmt.Errorf("%w: columns are not aligned", ErrFormat))
	}
	return nil
}
