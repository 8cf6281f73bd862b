// Package samples reads the samples of matched series from segments, blocks and rollups into
// memory, and keeps those that count.
package samples

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/recent"
)

// Settings are the limits of a reader. Callers fill every field.
type Settings struct {
	MaxSamples int           // that one select may hold
	Threads    int           // that decode at once
	Lookback   time.Duration // how far before the range the histogram that shows a counter reset is searched
	CacheBytes int64         // of the cache
	Starts     bool          // functions of counters get the start timestamps of all samples
}

// Reader reads the samples of matched series. It is safe for concurrent use.
type Reader struct {
	settings Settings
	files    *source.Files
	cache    *index.Cache                                                // of decoded lists, samples of blocks, and places and stand-ins of rollups
	whole    func(context.Context, *source.Object) (*index.Table, error) // the series table of an object
	recent   *recent.Segments                                            // nil: none
	partial  *index.Often                                                // reads of rows, by key of the samples of their row group
	framed   *index.Often                                                // likewise, by key of its frame
	repeats  *index.Often                                                // of the same rows in short windows, by key of their samples
	metrics  *request.Metrics
}

// New returns a reader. kept are segments that this process has stored; nil: none. whole returns
// the series table of an object.
func New(s Settings, files *source.Files, cache *index.Cache, kept *recent.Segments, whole func(context.Context, *source.Object) (*index.Table, error), m *request.Metrics) *Reader {
	return &Reader{settings: s, files: files, cache: cache, recent: kept, whole: whole, partial: index.NewOften(index.WholeAfter, index.MaxOften), framed: index.NewOften(framedAfter, index.MaxOften), repeats: index.NewOften(repeatedAfter, s.CacheBytes/repeatedShare/sampleBytes), metrics: m}
}

// sampleBytes is the memory of a sample without a start timestamp.
const sampleBytes = 16

// sampleShare is the inverse of the share of the cache that the decoded samples of one segment may
// take. Larger segments are decoded for every read.
const sampleShare = 16

// fits reports whether so many samples of a segment may be in the cache.
func (s *Reader) fits(samples int64) bool {
	return samples*sampleBytes <= s.settings.CacheBytes/sampleShare
}

// lists returns what load makes of a segment's columns for the rows of t, its series table: from
// the cache, where it has the given name, unless it is too large for it.
func lists[T index.Sized](ctx context.Context, s *Reader, what, name string, o *source.Object, t *index.Table, load func(*segment.Columns) (T, error)) (T, error) {
	open := func() (out T, err error) {
		in := s.files.Open(ctx, o.Series, o.Size)
		err = in.Prefetch([][2]int64{{0, o.Size}})
		var columns *segment.Columns
		if l := t.Layout(); err == nil && l != nil {
			columns = segment.NewColumns(in, l)
		} else if err == nil {
			columns, err = segment.OpenColumns(in, o.Size)
		}
		if err == nil {
			out, err = load(columns)
			columns.Release()
		}
		if err = errors.Join(err, in.Close()); err != nil {
			return out, o.Broken(fmt.Errorf("read %s of %s: %w", what, o.Series, err))
		}
		return out, nil
	}
	samples := o.Footer.Samples
	if t.Partial() {
		samples = t.TotalFloats() + t.TotalHists()
	}
	if !s.fits(samples) {
		return open()
	}
	out, hit, err := index.Get(ctx, s.cache, name, open)
	s.metrics.CountLookup("samples", hit)
	return out, err
}
