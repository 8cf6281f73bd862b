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
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

const (
	maxProcs      = 5
	settleDelay   = time.Minute
	deletionDelay = 15 * time.Minute
)

// cast holds the number of processes of each kind.
type cast struct {
	writer, consumer, compactor, planner, worker, reader, cachedReader, historian, deleter, villain int
}

// populate starts processes if there are few.
func (w *world) populate() {
	c := w.set.cast
	for len(w.procs) < maxProcs {
		n := w.rng.IntN(c.writer + c.consumer + c.compactor + c.planner + c.worker + c.reader + c.cachedReader + c.historian + c.deleter + c.villain)
		is := func(weight int) bool { n -= weight; return n < 0 }
		switch {
		case is(c.writer):
			w.spawn("writer", func(p *proc) { w.ingest(p) })
		case is(c.consumer):
			w.spawn("consumer", func(p *proc) { w.consume(p) })
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

// remember reads as of a recent or arbitrary time.
func (w *world) remember(p *proc) {
	ago := w.time().Sub(dawn)
	if p.rng.IntN(3) > 0 {
		ago = min(ago, 20*time.Minute)
	}
	at := w.time().Add(-time.Duration(p.rng.Int64N(int64(ago + 1))))
	w.query(p, p.rng.IntN(2) == 0, &at)
}

// ingest sends a few requests, one after another. A request with an unknown outcome is not
// acknowledged, and its sender may send it again. It is stored as modes grouped and direct do, or
// sent to the queue.
func (w *world) ingest(p *proc) {
	for range 1 + p.rng.IntN(3) {
		x, samples := w.begin(p)
		queued := w.set.queued && p.rng.IntN(2) == 0
		for again := true; again; again = p.rng.IntN(2) == 0 {
			var err error
			if queued {
				err = w.writes.send(p, x, samples)
			} else {
				err = w.put(p, identity(p, p.clock(), false), []*write{x}, samples)
			}
			if err == nil {
				w.mu.Lock()
				x.acked = w.steps
				w.mu.Unlock()
			}
			if err == nil || errors.Is(err, errDead) {
				break
			}
		}
	}
}

// begin starts a new request.
func (w *world) begin(p *proc) (*write, []sample) {
	samples := w.invent(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &write{began: w.steps + 1, acked: never, shown: never}
	for _, s := range samples {
		w.truth.values[s.point] = append(w.truth.values[s.point], value{x, s.v})
	}
	return x, samples
}

// identity returns the identity of a new segment; its time is the machine's or the queue's.
func identity(p *proc, at time.Time, queued bool) catalog.SegmentID {
	id, err := ulid.New(uint64(at.UnixMilli()), rngReader{p})
	if err != nil {
		panic(err)
	}
	return catalog.SegmentID{ID: id, Queued: queued}
}

// put stores a segment of one window.
func (w *world) put(p *proc, id catalog.SegmentID, from []*write, samples []sample) error {
	id.Window = key.WindowOf(samples[0].ts)
	k, body := id.Key(tenant).String(), w.tools.encode(samples)
	w.mu.Lock()
	w.truth.segments[k], w.truth.contents[k] = from, samples
	w.mu.Unlock()
	_, err := (&port{p: p}).Put(p.ctx, k, bytes.NewReader(body), objstore.Condition{IfAbsent: true})
	return err
}

// invent generates samples of one window. There are few distinct timestamps, so that many are
// written repeatedly.
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

// tools are what the processes of all schedules of a bubble share to save time. Nothing that they
// hold can be observed.
type tools struct {
	mu       sync.Mutex
	segments *segment.Writer
	encoders parquetfile.Encoders
}

func newTools() *tools {
	w, err := segment.NewWriter()
	if err != nil {
		panic(err)
	}
	return &tools{segments: w}
}

func (t *tools) encode(samples []sample) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []segment.Row
	last := -1
	for _, s := range samples {
		if last != s.series {
			rows = append(rows, segment.Row{Labels: lset(s.series)})
			last = s.series
		}
		r := &rows[len(rows)-1]
		r.Floats = append(r.Floats, segment.Float{T: s.ts, V: s.v})
	}
	b, _, err := segmenttest.EncodeWith(t.segments, rows, nil)
	if err != nil {
		panic(err)
	}
	return b
}

// rngReader is a process's randomness as an io.Reader.
type rngReader struct{ p *proc }

func (r rngReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.p.rng.Uint32())
	}
	return len(b), nil
}

var _ io.Reader = rngReader{}

func (w *world) stage(p *proc) *compact.Stage { return w.stageOver(p, &port{p: p}) }

func (w *world) stageOver(p *proc, store objstore.Store) *compact.Stage {
	s, err := compact.New(compact.Settings{
		Policy:      plan.Policy{MinPartSegments: 2, MaxSources: 4, MaxSegments: 4, MaxJobSamples: w.set.maxJobSamples, Retention: w.set.retention},
		Concurrency: 1, DeletionDelay: w.set.deletionDelay, Entropy: rngReader{p}, Encoders: &w.tools.encoders,
	}, store, nil, slog.New(slog.DiscardHandler), p.clock)
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

// remove deletes one series or all, in a range, or without an end.
func (w *world) remove(p *proc) {
	now := w.time()
	window := int64(key.WindowOf(dawn.Add(time.Duration(p.rng.Int64N(int64(now.Sub(dawn) + 1)))).UnixMilli()))
	mint, maxt := window, window+[]int64{0, 1000, key.WindowMillis - 1, 12 * key.WindowMillis}[p.rng.IntN(4)]
	if p.rng.IntN(3) == 0 {
		maxt = key.MaxTime
	}
	d := &deletion{mint: mint, maxt: maxt, acked: never, effect: never}
	matchers := []catalog.Matcher{{Type: "=", Name: model.MetricNameLabel, Value: "m"}}
	only := -1
	if p.rng.IntN(2) == 0 {
		only = p.rng.IntN(seriesCount)
		matchers = append(matchers, catalog.Matcher{Type: "=~", Name: "s", Value: fmt.Sprintf("%d|x", only)})
	}
	for i := range d.matches {
		d.matches[i] = only < 0 || only == i
	}
	matchers = append(matchers, catalog.Matcher{Type: "!=", Name: "nonce", Value: p.name})
	w.mu.Lock()
	d.began = w.steps + 1
	w.truth.deletions[p.name] = d
	w.mu.Unlock()
	store := deleting{&port{p: p}, w.set.broken}
	_, err := catalog.Delete(p.ctx, store, tenant, catalog.Deletion{
		Sets: [][]catalog.Matcher{matchers}, MinT: mint, MaxT: maxt, Queued: w.set.queued && w.set.broken != deletesWithoutQueue,
	})
	w.mu.Lock()
	n := d.times
	if err == nil {
		d.acked = w.steps
	}
	w.mu.Unlock()
	if err == nil && n != 1 {
		w.fail("the delete of %s was acknowledged, and applied %d times", p.name, n)
	}
	if err != nil && !errors.Is(err, catalog.ErrUnknownEffect) && !errors.Is(err, catalog.ErrUnsettled) && n != 0 {
		w.fail("the delete of %s was refused, and applied: %w", p.name, err)
	}
}

// deleting is the store of a deleting client, which may violate the rules.
type deleting struct {
	*port
	broken breakage
}

func (d deleting) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	if d.broken == deletesWithoutListing && strings.HasPrefix(prefix, key.SegmentsPrefix(tenant)) {
		return func(func(objstore.Object, error) bool) {}
	}
	return d.port.List(ctx, prefix, startAfter)
}

func (d deleting) Now(ctx context.Context) (time.Time, error) {
	now, err := d.port.Now(ctx)
	if d.broken == deletesWithoutWaiting && d.p.asked {
		now = now.Add(time.Hour)
	}
	d.p.asked = true
	return now, err
}

// backwards reads the manifest before the listing.
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

// collectsAtOnce deletes blocks that no manifest contains, without waiting for their jobs to end.
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
	if _, err := catalog.PruneHistory(p.ctx, store, tenant, deletionDelay); err != nil {
		return
	}
	m, _, err := catalog.ReadManifest(p.ctx, store, tenant)
	if err != nil {
		return
	}
	dead := m.Deletable(w.time(), deletionDelay)
	for _, s := range dead.Segments {
		if store.Delete(p.ctx, s.Key(tenant).String()) != nil {
			return
		}
	}
	_, _ = catalog.Commit(p.ctx, store, tenant, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		m.Consumed = slices.DeleteFunc(m.Consumed, func(c catalog.Consumed) bool {
			return c.Gone != 0 || slices.Contains(dead.Segments, c.SegmentID)
		})
		return m, nil
	})
}

// deletesBeforePruning deletes objects that were consumed long enough ago, even if the history may
// contain them as live.
func deletesBeforePruning(w *world, p *proc) {
	store := &port{p: p}
	m, _, err := catalog.ReadManifest(p.ctx, store, tenant)
	if err != nil {
		return
	}
	for _, c := range m.Consumed {
		if c.Gone == 0 && c.At <= w.time().Add(-deletionDelay).UnixMilli() && store.Delete(p.ctx, c.Key(tenant).String()) != nil {
			return
		}
	}
}

// mergesAnything merges two segments of a window, and ignores those written between them.
func mergesAnything(w *world, p *proc) {
	now := w.time()
	snap, err := catalog.Take(p.ctx, &port{p: p}, tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return
	}
	for _, s := range snap.Segments {
		in := slices.DeleteFunc(slices.Clone(snap.Segments), func(o catalog.SegmentRef) bool { return o.Window != s.Window })
		if len(in) < 3 {
			continue
		}
		stage := w.stageOver(p, blind{&port{p: p}, in[1 : len(in)-1]})
		_, _ = stage.Run(p.ctx, tenant, plan.Job{
			Kind: plan.Merge, Level: key.Part, Window: s.Window, Planned: now, Why: "whim",
			Sources: catalog.Sources{Segments: []catalog.SegmentID{in[0].SegmentID(), in[len(in)-1].SegmentID()}},
		})
		return
	}
}

// blind is a store whose listings lack some segments.
type blind struct {
	*port
	hidden []catalog.SegmentRef
}

func (b blind) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		for o, err := range b.port.List(ctx, prefix, startAfter) {
			hidden := slices.ContainsFunc(b.hidden, func(s catalog.SegmentRef) bool { return s.String() == o.Key })
			if !hidden && !yield(o, err) {
				return
			}
		}
	}
}
