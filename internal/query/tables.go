package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/index"
)

// tables returns the series tables of objects, from the cache or through files.
func (s *Stage) tables(ctx context.Context, objs []located) ([]*index.Table, error) {
	out := make([]*index.Table, len(objs))
	err := s.files.each(ctx, len(objs), func(ctx context.Context, i int) (err error) {
		out[i], err = s.table(ctx, &objs[i])
		return err
	})
	return out, err
}

// table returns the series table of one object.
func (s *Stage) table(ctx context.Context, o *located) (*index.Table, error) {
	t, hit, err := index.Get(ctx, s.index, o.series, func() (*index.Table, error) {
		m, size := o.footer.block, o.size
		if m != nil {
			f := m.File(block.SeriesFile)
			if f == nil {
				return nil, fmt.Errorf("%w: meta.json names no %s", block.ErrFormat, block.SeriesFile)
			}
			size = f.Bytes
		}
		in := s.files.readerAt(ctx, o.series, size)
		t, err := readTable(in, size, m, s.seed)
		return t, errors.Join(err, in.Close())
	})
	s.metrics.cached("index", hit)
	if err != nil {
		return nil, o.broken(fmt.Errorf("read series of %s: %w", o.series, err))
	}
	return t, nil
}

// readTable decodes a series table, of a segment if m is nil.
func readTable(in spanReader, size int64, m *block.Meta, seed uint64) (*index.Table, error) {
	if err := in.prefetch([][2]int64{{0, size}}); err != nil {
		return nil, err
	}
	if m == nil {
		return index.LoadSegment(in, size, seed)
	}
	return index.LoadBlock(in, size, m, seed)
}

// cached counts a lookup in a cache.
func (m *metrics) cached(cache string, hit bool) {
	if hit {
		m.cacheHits.WithLabelValues(cache).Inc()
	} else {
		m.cacheMiss.WithLabelValues(cache).Inc()
	}
}
