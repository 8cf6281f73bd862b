package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/segment"
)

const (
	maxProcs      = 5
	flushTimeout  = 30 * time.Second
	deletionDelay = 15 * time.Minute
)

// cast is who appears how often.
type cast struct{ writer, compactor, planner, worker, reader, cachedReader, historian, deleter, villain int }

// populate starts processes while there are few.
func (w *world) populate() {
	c := w.set.cast
	for len(w.procs) < maxProcs {
		n := w.rng.IntN(c.writer + c.compactor + c.planner + c.worker + c.reader + c.cachedReader + c.historian + c.deleter + c.villain)
		is := func(weight int) bool { n -= weight; return n < 0 }
		switch {
		case is(c.writer):
			w.spawn("writer", func(p *proc) { w.ingest(p) })
		case is(c.compactor):
			w.spawn("compactor", func(p *proc) { w.compact(p, 1+p.rng.IntN(2)) })
		case is(c.planner):
			w.spawn("planner", func(p *proc) { w.plan(p, w.jobs, 1+p.rng.IntN(2)) })
		case is(c.worker):
			body := w.jobs.take()
			w.spawn("worker", func(p *proc) { w.work(p, body) })
		case is(c.reader):
			w.spawn("reader", func(p *proc) { w.query(p, false, nil) }).drowsy = true
		case is(c.cachedReader):
			w.spawn("cached-reader", func(p *proc) { w.query(p, true, nil) }).drowsy = true
		case is(c.historian):
			w.spawn("historian", func(p *proc) { w.remember(p) }).drowsy = true
		case is(c.deleter):
			w.spawn("deleter", func(p *proc) { w.remove(p) })
		default:
			w.spawn("villain", func(p *proc) { w.set.villain(w, p) })
		}
	}
}

// remember reads as of a moment that is not long ago, or any.
func (w *world) remember(p *proc) {
	ago := w.time().Sub(dawn)
	if p.rng.IntN(3) > 0 {
		ago = min(ago, 20*time.Minute)
	}
	at := w.time().Add(-time.Duration(p.rng.Int64N(int64(ago + 1))))
	w.query(p, p.rng.IntN(2) == 0, &at)
}

// ingest flushes a few segments, one after another, as the ingest stage does: a flush whose outcome is not known is not acknowledged, and its sender
// may send again.
func (w *world) ingest(p *proc) {
	var last ulid.ULID
	entropy := rngReader{p}
	for range 1 + p.rng.IntN(3) {
		samples := w.invent(p)
		for again := true; again; again = p.rng.IntN(2) == 0 {
			id, err := ulid.New(uint64(max(p.clock().UnixMilli(), int64(last.Time())+1)), entropy)
			if err != nil {
				panic(err)
			}
			last = id
			k := key.Segment{Tenant: tenant, Window: key.WindowOf(samples[0].ts), ID: id}.String()
			body := encode(samples)
			w.mu.Lock()
			w.truth.written[k] = samples
			w.mu.Unlock()
			store := &port{p: p, deadline: ulid.Time(id.Time()).Add(flushTimeout)}
			if _, err := store.Put(p.ctx, k, bytes.NewReader(body), objstore.Condition{IfAbsent: true}); err == nil || errors.Is(err, errDead) {
				break
			}
		}
	}
}

// invent makes up samples of one window. Few different timestamps make sure that many are written again.
func (w *world) invent(p *proc) []sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now
	window := key.WindowOf(now.UnixMilli())
	switch n := p.rng.IntN(10); {
	case n < 3:
		window -= key.Window(int64(1+p.rng.IntN(3)) * key.WindowMillis)
	case n < 5:
		window = key.WindowOf(dawn.Add(time.Duration(p.rng.Int64N(int64(now.Sub(dawn) + 1)))).UnixMilli())
	}
	offsets := []int64{0, 1000, key.WindowMillis - 1}
	var out []sample
	for s := range seriesCount {
		for _, o := range offsets {
			if p.rng.IntN(2) == 0 {
				w.truth.last++
				out = append(out, sample{point{s, int64(window) + o}, w.truth.last})
			}
		}
	}
	if out == nil {
		w.truth.last++
		out = []sample{{point{0, int64(window)}, w.truth.last}}
	}
	return out
}

func encode(samples []sample) []byte {
	var rows []segment.Row
	for _, s := range samples {
		if n := len(rows); n == 0 || rows[n-1].Labels.Get("s") != fmt.Sprint(s.series) {
			rows = append(rows, segment.Row{Labels: lset(s.series)})
		}
		r := &rows[len(rows)-1]
		r.Floats = append(r.Floats, segment.Float{T: s.ts, V: s.v})
	}
	b, _, err := segment.Encode(rows, nil)
	if err != nil {
		panic(err)
	}
	return b
}

// rngReader is a process's randomness as bytes.
type rngReader struct{ p *proc }

func (r rngReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.p.rng.Uint32())
	}
	return len(b), nil
}

var _ io.Reader = rngReader{}

func (w *world) stage(p *proc) *compact.Stage {
	s, err := compact.New(compact.Settings{
		MinPartSegments: 2, MaxSources: 4, MaxJobSamples: w.set.maxJobSamples, Concurrency: 1, Retention: w.set.retention,
		DeletionDelay: w.set.deletionDelay, Entropy: rngReader{p},
	}, &port{p: p}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), p.clock)
	if err != nil {
		panic(err)
	}
	return s
}

// compact runs cycles of the compaction stage. Failures are part of the schedule.
func (w *world) compact(p *proc, cycles int) {
	s := w.stage(p)
	for range cycles {
		if r, err := s.Cycle(p.ctx); err != nil && w.set.calm {
			w.fail("%s fails undisturbed: %w", p.name, err)
		} else {
			w.count(r)
		}
	}
}

// remove deletes a series, or all, in some range.
func (w *world) remove(p *proc) {
	now := w.time()
	window := int64(key.WindowOf(dawn.Add(time.Duration(p.rng.Int64N(int64(now.Sub(dawn) + 1)))).UnixMilli()))
	mint, maxt := window, window+[]int64{0, 1000, key.WindowMillis - 1, 12 * key.WindowMillis}[p.rng.IntN(4)]
	matchers := []catalog.Matcher{{Type: "=", Name: model.MetricNameLabel, Value: "m"}}
	if p.rng.IntN(2) == 0 {
		matchers = append(matchers, catalog.Matcher{Type: "=~", Name: "s", Value: fmt.Sprintf("%d|x", p.rng.IntN(seriesCount))})
	}
	matchers = append(matchers, catalog.Matcher{Type: "!=", Name: "nonce", Value: p.name})
	_, err := catalog.Commit(p.ctx, &port{p: p}, tenant, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		next, _, err := m.Delete(p.clock(), matchers, mint, maxt)
		return next, err
	})
	w.mu.Lock()
	n := w.truth.nonces[p.name]
	w.mu.Unlock()
	if err == nil && n != 1 {
		w.fail("the delete of %s was acknowledged, and applied %d times", p.name, n)
	}
	if err != nil && !errors.Is(err, catalog.ErrUnknownEffect) && n != 0 {
		w.fail("the delete of %s was refused, and applied: %w", p.name, err)
	}
}

// backwards reads the manifest before the list.
type backwards struct {
	port
	manifest []byte
	obj      objstore.Object
	err      error
}

func (b *backwards) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	var r io.ReadCloser
	if r, b.obj, b.err = b.port.Get(ctx, key.Manifest(tenant), 0, -1); b.err == nil {
		b.manifest, b.err = io.ReadAll(r)
	}
	return b.port.List(ctx, prefix, startAfter)
}

func (b *backwards) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if k != key.Manifest(tenant) {
		return b.port.Get(ctx, k, offset, length)
	}
	return io.NopCloser(bytes.NewReader(b.manifest)), b.obj, b.err
}

// collectsAtOnce deletes blocks that no manifest names without waiting for their jobs to end.
func collectsAtOnce(w *world, p *proc) {
	store := &port{p: p}
	found := map[catalog.BlockID][]string{}
	for obj, err := range store.List(p.ctx, key.BlocksPrefix(tenant), "") {
		if err != nil {
			return
		}
		if b, _, err := key.ParseBlockFile(obj.Key); err == nil {
			id := catalog.BlockID{Level: b.Level, Window: b.Window, ID: b.ID}
			found[id] = append(found[id], obj.Key)
		}
	}
	m, _, err := catalog.ReadManifest(p.ctx, store, tenant)
	if err != nil {
		return
	}
	for _, b := range m.Blocks {
		delete(found, b.BlockID())
	}
	for _, r := range m.Retired {
		delete(found, r.BlockID)
	}
	for _, id := range slices.SortedFunc(maps.Keys(found), func(a, b catalog.BlockID) int { return a.ID.Compare(b.ID) }) {
		for _, k := range found[id] {
			if store.Delete(p.ctx, k) != nil {
				return
			}
		}
	}
}

// forgetsAtOnce drops entries from the manifest as soon as the objects are deleted.
func forgetsAtOnce(w *world, p *proc) {
	store := &port{p: p}
	m, _, err := catalog.PruneHistory(p.ctx, store, tenant, p.clock, deletionDelay)
	if err != nil {
		return
	}
	dead := m.Deletable(p.clock(), deletionDelay)
	for _, s := range dead.Segments {
		if store.Delete(p.ctx, s.Key(tenant).String()) != nil {
			return
		}
	}
	_, _ = catalog.Commit(p.ctx, store, tenant, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		m.Consumed = slices.DeleteFunc(m.Consumed, func(c catalog.Consumed) bool { return slices.Contains(dead.Segments, c.SegmentID) })
		return m, nil
	})
}

// deletesBeforePruning deletes what was consumed long enough ago, although history may name it as live.
func deletesBeforePruning(w *world, p *proc) {
	store := &port{p: p}
	m, _, err := catalog.ReadManifest(p.ctx, store, tenant)
	if err != nil {
		return
	}
	for _, c := range m.Consumed {
		if c.Gone == 0 && c.At <= p.clock().Add(-deletionDelay).UnixMilli() && store.Delete(p.ctx, c.Key(tenant).String()) != nil {
			return
		}
	}
}

// mergesAnything merges two segments of a window, whatever was written between them.
func mergesAnything(w *world, p *proc) {
	now := p.clock()
	snap, err := catalog.Take(p.ctx, &port{p: p}, tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return
	}
	settled := slices.DeleteFunc(snap.Segments, func(s catalog.SegmentRef) bool { return ulid.Time(s.ID.Time()).After(now.Add(-time.Minute)) })
	for _, s := range settled {
		in := slices.DeleteFunc(slices.Clone(settled), func(o catalog.SegmentRef) bool { return o.Window != s.Window })
		if len(in) < 3 {
			continue
		}
		_, _ = w.stage(p).Run(p.ctx, tenant, compact.Job{
			Kind: compact.Merge, Level: key.Part, Window: s.Window, Planned: now, Why: "whim",
			Sources: catalog.Sources{Segments: []catalog.SegmentID{in[0].SegmentID(), in[len(in)-1].SegmentID()}},
		})
		return
	}
}
