package query

import (
	"context"
	"io"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/duck"
)

// OpenRows makes columns of row groups of a block's file local: it returns a path, valid until release, and the rows there at which the groups
// begin.
func (s *Stage) OpenRows(ctx context.Context, key string, f *block.File, groups []int, columns []string) (path string, at []int64, release func(), err error) {
	got, release, err := s.files.openRows(ctx, []rowsNeed{{key, f, groups, columns}})
	if err != nil {
		return "", nil, nil, err
	}
	return got[0].path, got[0].at, release, nil
}

// Cost says what OpenRows would ask the store for.
func (s *Stage) Cost(key string, f *block.File, groups []int, columns []string) (gets int, bytes int64, err error) {
	return s.files.cost([]rowsNeed{{key, f, groups, columns}})
}

// SpanReader returns a reader of an object that asks the store for what is not local. prefetch is that of its method.
func (s *Stage) SpanReader(ctx context.Context, key string, size int64) (r io.ReaderAt, prefetch func([][2]int64) error, end func() error) {
	sr := s.files.readerAt(ctx, key, size)
	return sr, sr.prefetch, sr.Close
}

// Texts runs a statement of VARCHAR columns.
func (s *Stage) Texts(ctx context.Context, sql string, columns int) ([][]string, error) {
	types := make([]string, columns)
	for i := range types {
		types[i] = duck.Varchar
	}
	var out [][]string
	err := s.db.Each(ctx, sql, types, func(n int, cols []duck.Vector) error {
		for i := range n {
			row := make([]string, columns)
			for c := range cols {
				row[c] = cols[c].Strings()[i].String()
			}
			out = append(out, row)
		}
		return nil
	})
	return out, err
}
