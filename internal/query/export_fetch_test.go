package query

import (
	"context"
	"io"
)

// SpanReader returns a reader of an object that asks the store for what is not local. prefetch is that of its method.
func (s *Stage) SpanReader(ctx context.Context, key string, size int64) (r io.ReaderAt, prefetch func([][2]int64) error, end func() error) {
	sr := s.Files.Open(ctx, key, size)
	return sr, sr.Prefetch, sr.Close
}
