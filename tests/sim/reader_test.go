package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// cache holds decoded objects by key. Objects never change: the store reports an object that does.
type cache struct {
	samples map[string][]sample // of a segment; of a block, by its prefix
	files   map[string][]string // of a block
}

func newCache() *cache { return &cache{map[string][]sample{}, map[string][]string{}} }

// source is the source of a reader's objects.
type source interface {
	segment(ctx context.Context, k string) ([]sample, error)
	block(ctx context.Context, b key.Block) ([]sample, error)
}

// gather reads everything that is live in a snapshot.
func (w *world) gather(ctx context.Context, src source, snap catalog.Snapshot) (map[point]float64, error) {
	r := result{values: make(map[point]float64, len(w.truth.values)), ranks: make(map[point]ulid.ULID, len(w.truth.values))}
	for i := range snap.Tombstones {
		t := &snap.Tombstones[i]
		r.tombstones = append(r.tombstones, applied{t, w.truth.deletions[nonce(t)].matches})
	}
	for _, s := range snap.Segments {
		got, err := src.segment(ctx, s.String())
		if err != nil {
			return nil, fmt.Errorf("read segment %s: %w", s.SegmentID(), err)
		}
		if err := r.add(got, s.Rank, s.DeletesThrough); err != nil {
			return nil, fmt.Errorf("segment %s: %w", s.SegmentID(), err)
		}
	}
	for _, b := range snap.Blocks {
		got, err := src.block(ctx, b.Key(snap.Tenant))
		if err != nil {
			return nil, fmt.Errorf("read block %s: %w", b.BlockID(), err)
		}
		if int64(len(got)) != b.Samples {
			return nil, fmt.Errorf("block %s has %d samples, the manifest records %d", b.BlockID(), len(got), b.Samples)
		}
		if err := r.add(got, b.Rank, b.DeletesThrough); err != nil {
			return nil, fmt.Errorf("block %s: %w", b.BlockID(), err)
		}
	}
	return r.values, nil
}

// result holds the samples that a reader has seen so far.
type result struct {
	tombstones []applied
	values     map[point]float64
	ranks      map[point]ulid.ULID
}

// applied is a tombstone and the series that it matches.
type applied struct {
	*catalog.Tombstone
	matches [seriesCount]bool
}

// add merges a source by rank, without deleted samples.
func (r *result) add(samples []sample, rank, through ulid.ULID) error {
	for _, s := range samples {
		if r.deleted(s.point, through) {
			continue
		}
		switch old, seen := r.ranks[s.point]; {
		case seen && old == rank:
			return fmt.Errorf("%v is there twice with rank %s", s.point, rank)
		case !seen || rank.Compare(old) > 0:
			r.values[s.point], r.ranks[s.point] = s.v, rank
		}
	}
	return nil
}

func (r *result) deleted(p point, through ulid.ULID) bool {
	for _, t := range r.tombstones {
		if t.matches[p.series] && t.Overlaps(p.ts, p.ts) && t.Covers(through) {
			return true
		}
	}
	return false
}

// direct reads without turns. It decodes an object once, but checks its existence each time.
type direct struct{ w *world }

func (d direct) segment(ctx context.Context, k string) ([]sample, error) {
	return d.w.decoded.segment(ctx, d.w.mem, k)
}

func (d direct) block(ctx context.Context, b key.Block) ([]sample, error) {
	return d.w.decoded.block(ctx, d.w.mem, b)
}

// inTurn reads as a process does. With keep it reuses objects that any reader has read before, like
// a disk cache.
type inTurn struct {
	p    *proc
	keep bool
}

func (r inTurn) segment(ctx context.Context, k string) ([]sample, error) {
	if r.keep && r.p.w.kept[k] {
		return r.p.w.decoded.samples[k], nil
	}
	got, err := r.p.w.decoded.segment(ctx, &port{p: r.p}, k)
	r.p.w.kept[k] = r.p.w.kept[k] || err == nil
	return got, err
}

func (r inTurn) block(ctx context.Context, b key.Block) ([]sample, error) {
	k := b.Prefix()
	if r.keep && r.p.w.kept[k] {
		return r.p.w.decoded.samples[k], nil
	}
	got, err := r.p.w.decoded.block(ctx, &port{p: r.p}, b)
	r.p.w.kept[k] = r.p.w.kept[k] || err == nil
	return got, err
}

// segment fetches a segment, and decodes it if it is new.
func (c *cache) segment(ctx context.Context, store objstore.Getter, k string) ([]sample, error) {
	known, ok := c.samples[k]
	data, err := fetch(ctx, store, k, !ok)
	if err != nil || ok {
		return known, err
	}
	t := series.NewTable(1)
	b, err := segment.Decode(data, t, nil)
	if err != nil {
		return nil, err
	}
	view := t.View()
	var out []sample
	from := 0
	for i, ref := range b.Rows {
		n, err := number(&view, ref)
		if err != nil {
			return nil, err
		}
		for j := from; j < b.End[i]; j++ {
			out = append(out, sample{point{n, b.TS[j]}, b.V[j]})
		}
		from = b.End[i]
	}
	c.samples[k] = out
	return out, nil
}

// block fetches every file of a block that has samples, and decodes them if it is new.
func (c *cache) block(ctx context.Context, store objstore.Getter, b key.Block) ([]sample, error) {
	k := b.Prefix()
	known, ok := c.samples[k]
	raw, err := fetch(ctx, store, b.File("meta.json"), !ok)
	if err != nil {
		return nil, err
	}
	if ok {
		for _, name := range c.files[k] {
			if _, err := fetch(ctx, store, b.File(name), false); err != nil {
				return nil, err
			}
		}
		return known, nil
	}
	files := memFiles{"meta.json": raw}
	meta, err := block.ReadMeta(raw)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range meta.Files {
		if files[f.Name], err = fetch(ctx, store, b.File(f.Name), true); err != nil {
			return nil, err
		}
		names = append(names, f.Name)
	}
	out, err := decodeBlock(files)
	if err != nil {
		return nil, err
	}
	c.files[k], c.samples[k] = names, out
	return out, nil
}

func decodeBlock(files memFiles) ([]sample, error) {
	r, err := block.Open(files)
	if err != nil {
		return nil, err
	}
	t := series.NewTable(1)
	rows, err := r.Series(t, nil)
	if err != nil {
		return nil, err
	}
	view := t.View()
	cur := r.Floats()
	var out []sample
	for _, row := range rows {
		n, err := number(&view, row.Ref)
		if err != nil {
			return nil, err
		}
		var run block.FloatRun
		if err := cur.Next(row.Floats, &run); err != nil {
			return nil, err
		}
		for i, ts := range run.TS {
			out = append(out, sample{point{n, ts}, run.V[i]})
		}
	}
	return out, nil
}

// memFiles are the files of a block.
type memFiles map[string][]byte

func (f memFiles) Open(name string) (io.ReaderAt, int64, error) {
	b, ok := f[name]
	if !ok {
		return nil, 0, fmt.Errorf("open %s: %w", name, objstore.ErrNotFound)
	}
	return bytes.NewReader(b), int64(len(b)), nil
}

// number returns the number of a label set's series.
func number(v *series.View, ref series.Ref) (int, error) {
	for _, p := range v.Pairs(ref) {
		if v.Names[p.Name] == "s" {
			return strconv.Atoi(v.Values[p.Name][p.Value])
		}
	}
	return 0, errors.New("a series without the label s")
}

// fetch gets an object. It returns the bytes only if they are needed.
func fetch(ctx context.Context, store objstore.Getter, k string, needed bool) (b []byte, err error) {
	r, o, err := store.Get(ctx, k, 0, -1)
	if err != nil {
		return nil, err
	}
	if needed {
		b = make([]byte, o.Size)
		_, err = io.ReadFull(r, b)
	}
	return b, errors.Join(err, r.Close())
}

// query reads everything that is live, now or as of a time. It starts again once if an object is
// missing. A reader without a cache may be arbitrarily slow: it may find objects missing, but
// returns no wrong answer.
func (w *world) query(p *proc, keep bool, asOf *time.Time) {
	for range 2 {
		began := w.time()
		snap, err := w.take(p, asOf)
		if err != nil {
			return
		}
		at := moment{began: p.listed, read: p.read}
		if asOf != nil {
			at.asOf, at.gen = *asOf, snap.Manifest.Generation
		}
		got, err := w.gather(p.ctx, inTurn{p, keep}, snap)
		if errors.Is(err, objstore.ErrNotFound) && w.time().Sub(began) < w.set.longestQuery {
			w.fail("%s finds an object missing %s after it began: %w", p.name, w.time().Sub(began), err)
			return
		}
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil || keep && w.time().Sub(began) > w.set.longestQuery {
			return // a request failed, or the query is too slow for a reader with a cache
		}
		w.compare(p.name, got, at)
		return
	}
}

func (w *world) take(p *proc, asOf *time.Time) (catalog.Snapshot, error) {
	var store catalog.Reader = &port{p: p}
	if w.set.broken == readsManifestFirst {
		store = &backwards{port: port{p: p}}
	}
	if asOf != nil {
		return catalog.TakeAsOf(p.ctx, store, tenant, *asOf, key.MinTime, key.MaxTime)
	}
	return catalog.Take(p.ctx, store, tenant, key.MinTime, key.MaxTime)
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}
