package exportapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/format/key"
)

// Blocks writes blocks of Prometheus' TSDB, one for each window that has samples. The directory can
// be the data directory of a Prometheus, which merges the blocks as it merges its own.
type Blocks struct {
	Report  Report
	Written int // blocks

	dir string
}

// NewBlocks writes to a directory, which is made or must be empty.
func NewBlocks(dir string) (*Blocks, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make the directory for blocks: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory for blocks: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("export: %s is not empty: want a new directory, because blocks of an earlier export would overlap", dir)
	}
	return &Blocks{dir: dir}, nil
}

// Close implements Sink.
func (*Blocks) Close() error { return nil }

// commitEvery is the number of samples that upstream's appender holds.
const commitEvery = 10_000

// Window implements Sink.
func (b *Blocks) Window(ctx context.Context, set storage.SeriesSet) (err error) {
	// A head takes samples that are up to half of its range older than the newest one, and series
	// come one after the other.
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), b.dir, 2*key.WindowMillis)
	if err != nil {
		return fmt.Errorf("begin a block: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	a := &appending{ctx: ctx, w: w, app: w.Appender(ctx), report: &b.Report}
	before := b.Report
	if err := b.Report.each(ctx, set, a.series); err != nil {
		return err
	}
	if err := a.app.Commit(); err != nil {
		return err
	}
	if b.Report == before {
		return nil
	}
	if _, err := w.Flush(ctx); err != nil {
		return fmt.Errorf("write a block: %w", err)
	}
	b.Written++
	return nil
}

// appending appends to one block.
type appending struct {
	ctx    context.Context
	w      *tsdb.BlockWriter
	app    storage.Appender
	report *Report
	open   int // samples that are not committed
}

func (a *appending) series(ls labels.Labels, it chunkenc.Iterator) error {
	ref, last := storage.SeriesRef(0), chunkenc.ValNone
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		// A commit holds one kind of samples of a series.
		if a.open >= commitEvery || last != chunkenc.ValNone && kind != last {
			if err := a.app.Commit(); err != nil {
				return err
			}
			a.open, a.app = 0, a.w.Appender(a.ctx)
		}
		last = kind
		a.open++
		var err error
		switch kind {
		case chunkenc.ValFloat:
			t, v := it.At()
			a.report.Floats++
			ref, err = a.app.Append(ref, ls, t, v)
		case chunkenc.ValHistogram:
			t, h := it.AtHistogram(nil)
			a.report.Hists++
			ref, err = a.app.AppendHistogram(ref, ls, t, h, nil)
		default:
			t, h := it.AtFloatHistogram(nil)
			a.report.Hists++
			ref, err = a.app.AppendHistogram(ref, ls, t, nil, h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
