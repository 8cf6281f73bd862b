package query

import (
	"context"
	"io"
)

// SpanReader returns a reader of an object that requests from the store what is not local. prefetch
// is the method Prefetch of that reader.
func (s *Stage) SpanReader(ctx context.Context, key string, size int64) (r io.ReaderAt, prefetch func([][2]int64) error, end func() error) {
	sr := s.Files.Open(ctx, key, size)
	return sr, sr.Prefetch, sr.Close
}
