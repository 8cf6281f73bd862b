package bulk

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/compact/merge"
	"github.com/promlake/promlake/internal/compact/sink"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/series"
)

// cleanupTimeout bounds the removal of a block that was not committed.
const cleanupTimeout = 30 * time.Second

// unit writes the block of a unit and commits it. errTooLarge: it must be divided.
func (im *importer) unit(ctx context.Context, u *Unit) error {
	m, _, err := catalog.ReadManifest(ctx, im.store, im.tenant)
	if err != nil {
		return err
	}
	now, err := im.store.Now(ctx)
	if err != nil {
		return err
	}
	if now.Before(m.Time()) {
		now = m.Time()
	}
	rank, inputs := im.plan.rank(u)
	id, err := identify(rank, u.Slice, now)
	if err != nil {
		return err
	}
	w := &work{
		im: im, u: u, record: Record{Inputs: inputs, Level: u.Level, Window: u.Window, Slice: u.Slice},
		entry: catalog.Block{Level: u.Level, Window: u.Window, ID: id, Rank: rank, DeletesThrough: m.LastTombstone, MaxT: -1, Slice: u.Slice},
	}
	if done, err := w.landed(ctx, m); done || err != nil {
		return err
	}
	if err := w.write(ctx); err != nil {
		return err
	}
	return w.commit(ctx)
}

// marked is the part of an identifier's entropy that is the same in every attempt, in bytes. The
// rest is random.
const marked = 5

// identify returns an identifier for a unit's block.
func identify(rank ulid.ULID, s catalog.Slice, now time.Time) (ulid.ULID, error) {
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	if err != nil {
		return id, fmt.Errorf("make an identifier: %w", err)
	}
	b := binary.BigEndian.AppendUint64(rank[:], uint64(max(s.Of, 1)))
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(s.Index)))
	copy(id[6:6+marked], sum[:])
	return id, nil
}

// work is one attempt at a unit.
type work struct {
	im     *importer
	u      *Unit
	entry  catalog.Block
	record Record
	files  *blockio.Writer
	table  *series.Table
	memory int64 // of rows
	buf    []byte
	equal  int64 // samples that another input has, too
}

// landed reports whether an import that was cut short has committed the unit's block, and then
// writes the record. errTooLarge: it has committed a part of the slice.
func (w *work) landed(ctx context.Context, m catalog.Manifest) (bool, error) {
	b, ok := m.Imported(w.entry)
	if ok && !w.u.Slice.Within(b.Slice) {
		return false, errTooLarge
	}
	if !ok {
		merged, err := w.merged(ctx, m)
		if err != nil || !merged {
			return false, err
		}
		b = catalog.Block{ID: w.entry.ID}
	}
	r := w.record
	r.Block, r.Slice, r.Series, r.Samples, r.Bytes = b.ID, b.Slice, b.Series, b.Samples, b.Bytes
	if !ok {
		r.Slice = w.u.Slice
	}
	if err := r.keep(ctx, w.im.store, w.im.tenant, b.ID); err != nil {
		return false, err
	}
	w.im.read(w.u.Samples)
	w.im.mu.Lock()
	w.im.report.Present++
	w.im.mu.Unlock()
	return true, nil
}

// merged reports whether a live block was made of the unit's block.
func (w *work) merged(ctx context.Context, m catalog.Manifest) (bool, error) {
	for _, b := range m.Blocks {
		if int64(b.Window) > w.u.from() || b.Level.End(b.Window) < w.u.to() || b.Rank.Compare(w.entry.Rank) < 0 {
			continue
		}
		raw, _, err := objstore.ReadAll(ctx, w.im.store, b.Key(w.im.tenant).File(block.MetaFile))
		if errors.Is(err, objstore.ErrNotFound) { // replaced and deleted since the manifest was read
			continue
		}
		if err != nil {
			return false, err
		}
		meta, err := block.ReadMeta(raw)
		if err != nil {
			return false, fmt.Errorf("read %s: %w", b.BlockID(), err)
		}
		if slices.ContainsFunc(meta.Sources, func(prefix string) bool {
			source, _, err := key.ParseBlockFile(prefix + block.MetaFile)
			return err == nil && slices.Equal(source.ID.Entropy()[:marked], w.entry.ID.Entropy()[:marked])
		}) {
			return true, nil
		}
	}
	return false, nil
}

// write merges the inputs and writes the files of the block.
func (w *work) write(ctx context.Context) (err error) {
	n, err := seed()
	if err != nil {
		return err
	}
	hasST := w.im.hasST.Load()
	w.table = series.NewTable(n)
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
	to, err := sink.New(w.files, &view, block.Options{Level: w.u.Level, HasST: hasST}, w.im.set.Rollups)
	if err != nil {
		return err
	}
	seen := int64(0)
	stats, err := merge.Merge(ctx, w.table, nil, sources, to, func(read int64) {
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
	return w.end(to, stats)
}

// end writes the last files of the block, unless it is empty.
func (w *work) end(to *sink.Sink, stats merge.Stats) error {
	if stats.Series == 0 {
		return nil
	}
	h := block.Header{
		Level: w.entry.Level, Window: w.entry.Window, Rank: w.entry.Rank, DeletesThrough: w.entry.DeletesThrough,
		Slice: block.Slice{Index: w.entry.Slice.Index, Of: w.entry.Slice.Of}, Sources: w.record.Inputs,
	}
	meta, err := to.Close(h)
	if err != nil {
		return err
	}
	w.entry.MinT, w.entry.MaxT = meta.MinT, meta.MaxT
	w.entry.Series, w.entry.Samples, w.entry.Bytes = meta.Series, meta.Floats+meta.Hists, w.files.Bytes()
	return nil
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
	r := &w.record
	if w.entry.Bytes > 0 {
		_, err := catalog.Commit(ctx, w.im.store, w.im.tenant, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
			return m.Add(now, w.entry)
		})
		if errors.Is(err, catalog.ErrConflict) {
			return w.refused(ctx, err)
		}
		if err != nil {
			return err
		}
		r.Block, r.Series, r.Samples, r.Bytes = w.entry.ID, w.entry.Series, w.entry.Samples, w.entry.Bytes
	}
	if err := r.keep(ctx, w.im.store, w.im.tenant, w.entry.ID); err != nil {
		return err
	}
	w.im.mu.Lock()
	defer w.im.mu.Unlock()
	sum := &w.im.report
	if w.entry.Bytes > 0 {
		sum.Blocks++
	}
	sum.Series, sum.Samples, sum.Bytes, sum.Equal = sum.Series+r.Series, sum.Samples+r.Samples, sum.Bytes+r.Bytes, sum.Equal+w.equal
	return nil
}

// refused handles a conflict: another process has imported the unit meanwhile, or the unit took so
// long that it must be divided.
func (w *work) refused(ctx context.Context, conflict error) error {
	m, _, err := catalog.ReadManifest(ctx, w.im.store, w.im.tenant)
	if err != nil {
		return errors.Join(conflict, err)
	}
	_, ok := m.Imported(w.entry)
	if err := w.remove(ctx); err != nil {
		return err
	}
	w.im.read(-w.u.Samples)
	if done, err := w.landed(ctx, m); ok && (done || err != nil) {
		return err
	}
	return fmt.Errorf("%w: %w", errTooLarge, conflict)
}
