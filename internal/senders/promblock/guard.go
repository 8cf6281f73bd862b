package promblock

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

// guard is deferred around upstream's decoders. They trust bytes whose checksums match, and panic
// where these make no sense. A server reads the blocks of its clients, so this must be an error.
func guard(err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("%w: it cannot be decoded: %v", ErrFormat, x)
	}
}

func openBlock(dir string, pool chunkenc.Pool) (b *tsdb.Block, err error) {
	defer guard(&err)
	if err := checkTombstones(dir); err != nil {
		return nil, err
	}
	return tsdb.OpenBlock(slog.New(slog.DiscardHandler), dir, pool, nil)
}

// all returns the postings of all series.
func (b *Block) all(ctx context.Context) (p index.Postings, err error) {
	defer guard(&err)
	name, value := index.AllPostingsKey()
	return b.index.Postings(ctx, name, value)
}

// series reads the labels and the places of the chunks of a series.
func (b *Block) series(ref storage.SeriesRef, builder *labels.ScratchBuilder, metas *[]chunks.Meta) (err error) {
	defer guard(&err)
	return b.index.Series(ref, builder, metas)
}
