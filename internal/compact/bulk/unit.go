package bulk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/compact/merge"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
)

// cleanupTimeout bounds the removal of a block that was not committed.
const cleanupTimeout = 30 * time.Second

// unit writes the block of a unit and commits it. errTooLarge: it must be divided. errAgain: it
// must be repeated.
func (im *importer) unit(ctx context.Context, planned *Unit) error {
	m, _, err := catalog.ReadManifest(ctx, im.store, im.tenant)
	if err != nil {
		return err
	}
	u, err := im.ledger.left(ctx, m, im.plan, planned)
	if err != nil {
		return err
	}
	if len(u.Inputs) == 0 {
		im.read(u.Samples)
		im.mu.Lock()
		defer im.mu.Unlock()
		im.report.Present++
		return nil
	}
	now, err := im.store.Now(ctx)
	if err != nil {
		return err
	}
	if now.Before(m.Time()) {
		now = m.Time()
	}
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	if err != nil {
		return fmt.Errorf("make an identifier: %w", err)
	}
	w := &work{im: im, u: &u}
	w.entry = catalog.Block{Level: u.Level, Window: u.Window, ID: id, DeletesThrough: im.plan.deletesThrough(&u, m.LastTombstone), MaxT: -1, Slice: u.Slice}
	w.entry.Rank, w.inputs = im.plan.rank(&u)
	if err := w.write(ctx); err != nil {
		return err
	}
	return w.commit(ctx)
}

// work is one attempt at a unit.
type work struct {
	im     *importer
	u      *Unit
	entry  catalog.Block
	inputs []string // IDs, sorted
	files  *blockio.Writer
	table  *series.Table
	memory int64 // of rows
	buf    []byte
	equal  int64 // samples that another input has, too
}

// write merges the inputs and writes the files of the block.
func (w *work) write(ctx context.Context) (err error) {
	hasST := w.im.hasST.Load()
	w.table = series.NewTable(mathrand.Uint64())
	var sources []*merge.Source
	for _, i := range w.u.Inputs {
		in := &w.im.plan.Inputs[i]
		o, err := w.im.open(ctx, i)
		if err != nil {
			return err
		}
		rows, err := o.Scan(ctx, w.u.from(), w.u.to(), w.keep)
		if err != nil {
			return err
		}
		sources = append(sources, merge.External(in.ID, rows, hasST))
	}
	view := w.table.View()
	w.files = blockio.NewWriter(ctx, w.im.store, w.entry.Key(w.im.tenant), w.im.set.TempDir)
	defer func() {
		if err = errors.Join(err, w.files.Close()); err != nil {
			err = errors.Join(err, w.remove(ctx))
		}
	}()
	to, err := blockio.NewSink(w.files, &view, block.Options{Level: w.u.Level, HasST: hasST}, w.im.set.Rollups)
	if err != nil {
		return err
	}
	seen := int64(0)
	stats, err := merge.Merge(ctx, &merge.Into{Table: w.table}, nil, sources, to, func(read int64) {
		w.im.read(read - seen)
		seen = read
	})
	if errors.Is(err, merge.ErrStartTimes) {
		w.im.hasST.Store(true)
		err = errAgain
	}
	if err != nil {
		w.im.read(-seen)
		return err
	}
	w.equal = stats.Read - stats.Samples
	if stats.Series == 0 {
		return nil
	}
	return to.Close(&w.entry, w.inputs)
}

// keep implements Keep for the unit's slice and memory.
func (w *work) keep(lset []series.Label, bytes int64) (ref series.Ref, ok bool, err error) {
	if w.u.Slice.Of > 1 {
		var id uint64
		if id, w.buf = series.IDOf(lset, w.buf); !w.u.Slice.Contains(id) {
			return 0, false, nil
		}
	}
	if ref, err = w.table.Intern(lset); err != nil {
		return 0, false, err
	}
	w.memory += bytes + mergeBytes
	if w.memory+w.table.Bytes() > w.im.share() {
		return 0, false, errTooLarge
	}
	return ref, true, nil
}

// mergeBytes is the memory of merge and writer for a series.
const mergeBytes = 150

// remove deletes the files of a block that will not be committed.
func (w *work) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return w.files.Remove(ctx)
}

// commit makes the block live and writes the record. If the commit fails, the block is left to
// garbage collection, because the commit may have taken effect.
func (w *work) commit(ctx context.Context) error {
	im := w.im
	if w.entry.Bytes == 0 {
		x := catalog.ImportOf(w.entry, w.inputs)
		x.Block = ulid.ULID{}
		return keep(ctx, im.store, im.tenant, w.entry.ID, x)
	}
	_, err := catalog.Commit(ctx, im.store, im.tenant, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		left, err := im.ledger.left(ctx, m, im.plan, w.u)
		if err == nil && len(left.Inputs) < len(w.u.Inputs) {
			err = errImported
		}
		if err != nil {
			return m, err
		}
		return m.Add(now, w.entry, w.inputs, im.ledger.written())
	})
	if err != nil {
		// Another import has done the unit or a part of it meanwhile, or the unit took so long that
		// it must be divided.
		again, divide := errors.Is(err, errImported), errors.Is(err, errTooLarge) || errors.Is(err, catalog.ErrConflict)
		if errors.Is(err, catalog.ErrUnknownEffect) || !again && !divide {
			return err
		}
		if err := w.remove(ctx); err != nil {
			return err
		}
		w.im.read(-w.u.Samples)
		if again {
			return fmt.Errorf("%w: %w", errAgain, err)
		}
		return fmt.Errorf("%w: %w", errTooLarge, err)
	}
	x := catalog.ImportOf(w.entry, w.inputs)
	if err := im.ledger.record(ctx, x); err != nil {
		return err
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	sum := &im.report
	sum.Blocks++
	sum.Series, sum.Samples, sum.Bytes, sum.Equal = sum.Series+x.Series, sum.Samples+x.Samples, sum.Bytes+x.Bytes, sum.Equal+w.equal
	return nil
}
