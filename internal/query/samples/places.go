package samples

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/source"
)

// Places map the rows of the series table of a block to rows of one of its rollups. They are
// immutable.
type Places struct {
	*rollup.Columns
	ends  []uint32 // by row of the series table: the end of its rows of the rollup
	first []int64  // by row group: its first row; and one more, their total
}

// Bytes implements index.Sized.
func (p *Places) Bytes() int64 { return p.Columns.Bytes() + int64(4*len(p.ends)+8*len(p.first)) }

// Of returns the rollup's rows [from, end) of a row of the series table.
func (p *Places) Of(row int32) (from, end int64) {
	if row > 0 {
		from = int64(p.ends[row-1])
	}
	return from, int64(p.ends[row])
}

// Group returns the row group of a row of the rollup.
func (p *Places) Group(row int64) int {
	g, ok := slices.BinarySearch(p.first, row)
	if !ok {
		g--
	}
	return g
}

// First returns the first row of a row group; of the number of row groups, the number of rows.
func (p *Places) First(group int) int64 { return p.first[group] }

// Places returns where a block's rollup, of this width, has its rows: from the cache or from the
// rollup. t is the series table of the block, or a table of some of its rows.
func (s *Reader) Places(ctx context.Context, o *source.Object, t *index.Table, file *block.File, step rollup.Step) (*Places, error) {
	key := o.Block.File(file.Name)
	p, hit, err := index.Get(ctx, s.cache, index.PartKey("columns", key, ""), func() (p *Places, err error) {
		if t.Partial() {
			if t, err = s.whole(ctx, o); err != nil {
				return nil, err
			}
		}
		in := s.files.Open(ctx, key, file.Bytes)
		if file.Bytes <= source.WholeBytes {
			err = in.Prefetch([][2]int64{{0, file.Bytes}})
		}
		if err == nil {
			p, err = readPlaces(in, o.Footer.Meta, t, file, step)
		}
		return p, errors.Join(err, in.Close())
	})
	s.metrics.CountLookup("rollup", hit)
	if err != nil {
		return nil, o.Broken(fmt.Errorf("open %s: %w", key, err))
	}
	return p, nil
}

// readPlaces matches the rows of a rollup with those of a series table: both are in one order.
func readPlaces(in source.Reader, m *block.Meta, t *index.Table, file *block.File, step rollup.Step) (*Places, error) {
	p := &Places{ends: make([]uint32, t.Rows()), first: []int64{0}}
	row, at := 0, uint32(0)
	limit := min(math.MaxUint32, m.Series*((m.MaxT-m.MinT)/step.Millis+2))
	columns, err := rollup.OpenColumns(in, file.Bytes, limit, func(id uint64, n int) error {
		for ; row < t.Rows(); row++ {
			if stored, _ := t.ID(row); stored == id {
				break
			}
			p.ends[row] = at
		}
		if row == t.Rows() {
			return fmt.Errorf("%w: series %d is not in its place", rollup.ErrFormat, id)
		}
		at += uint32(n)
		p.ends[row] = at
		return nil
	})
	if err != nil {
		return nil, err
	}
	if columns.Step != step.Millis {
		return nil, fmt.Errorf("%w: its buckets are %d ms wide", rollup.ErrFormat, columns.Step)
	}
	for ; row < t.Rows(); row++ {
		p.ends[row] = at
	}
	for g := range columns.Groups() {
		p.first = append(p.first, p.first[g]+columns.Rows(g))
	}
	p.Columns = columns
	return p, nil
}
