package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/source"
)

// tables returns the series tables of objects, from the cache or through files.
func (s *Stage) tables(ctx context.Context, objs []source.Object) ([]*index.Table, error) {
	out := make([]*index.Table, len(objs))
	err := s.files.Each(ctx, len(objs), func(ctx context.Context, i int) (err error) {
		out[i], err = s.table(ctx, &objs[i])
		return err
	})
	return out, err
}

// table returns the series table of one object.
func (s *Stage) table(ctx context.Context, o *source.Object) (*index.Table, error) {
	t, hit, err := index.Get(ctx, s.index, o.Series, func() (*index.Table, error) {
		m, size := o.Footer.Meta, o.Size
		if m != nil {
			f := m.File(block.SeriesFile)
			if f == nil {
				return nil, fmt.Errorf("%w: meta.json names no %s", block.ErrFormat, block.SeriesFile)
			}
			size = f.Bytes
		}
		in := s.files.Open(ctx, o.Series, size)
		t, err := readTable(in, size, m, s.seed)
		return t, errors.Join(err, in.Close())
	})
	s.metrics.Looked("index", hit)
	if err != nil {
		return nil, o.Broken(fmt.Errorf("read series of %s: %w", o.Series, err))
	}
	return t, nil
}

// readTable decodes a series table, of a segment if m is nil.
func readTable(in source.Reader, size int64, m *block.Meta, seed uint64) (*index.Table, error) {
	if err := in.Prefetch([][2]int64{{0, size}}); err != nil {
		return nil, err
	}
	if m == nil {
		return index.LoadSegment(in, size, seed)
	}
	return index.LoadBlock(in, size, m, seed)
}
