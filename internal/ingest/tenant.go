package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/segment"
)

// tenantIngest is one tenant's part of the stage: its collector, its current generation and its flusher.
type tenantIngest struct {
	stage  *Stage
	id     string
	groups *collector
	gen    atomic.Pointer[generation]
	writer *segment.Writer // owned by the flusher
	window key.Window      // wall-clock window of the generation; owned by the flusher
	done   chan struct{}   // closed when the flusher has ended
}

func (s *Stage) newTenant(id string) (*tenantIngest, error) {
	w, err := segment.NewWriter()
	if err != nil {
		return nil, err
	}
	t := &tenantIngest{
		stage: s, id: id, writer: w, done: make(chan struct{}),
		groups: newCollector(s.set.pace(s.store)),
		window: key.WindowOf(s.now().UnixMilli()),
	}
	t.gen.Store(s.newGeneration())
	go t.run()
	return t, nil
}

// run flushes group after group until the stage closes or the tenant has been idle for long.
func (t *tenantIngest) run() {
	defer close(t.done)
	for {
		g := t.groups.next(t.stage.ctx, t.stage.set.TenantIdle)
		switch {
		case g != nil:
			t.commit(g)
		case t.stage.ctx.Err() != nil:
			if g := t.groups.stop(errClosing); g != nil {
				g.finish(errClosing)
			}
			return
		case t.stage.forget(t):
			return
		}
	}
}

// commit makes a group durable and releases its requests. It is the one place where ingest writes.
func (t *tenantIngest) commit(g *group) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.stage.ctx, t.stage.set.FlushTimeout)
	err := t.flush(ctx, g.batches)
	cancel()
	t.stage.met.flushed(g, err, time.Since(begin))
	if err != nil {
		t.stage.log.Error("flush failed; senders were told to try again", "tenant", t.id, "samples", g.samples, "requests", len(g.batches), "err", err)
	}
	g.finish(err)
	t.groups.flushed()
	t.rotate()
}

// rotate begins a new generation when a window has passed on the wall clock or the current one is too large.
func (t *tenantIngest) rotate() {
	w := key.WindowOf(t.stage.now().UnixMilli())
	if w != t.window || t.gen.Load().bytes() > t.stage.set.MaxSeriesBytes {
		t.window = w
		t.gen.Store(t.stage.newGeneration())
	}
}

// maxParallelPuts bounds the segments of one flush that are written at the same time.
const maxParallelPuts = 8

// flush writes one segment per generation (mostly one) and window. It returns nil only when all of them are durable.
func (t *tenantIngest) flush(ctx context.Context, bs []*batch) error {
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(maxParallelPuts)
	var encodeErr error
	for _, part := range byGeneration(bs) {
		if encodeErr = t.flushGeneration(ctx, eg, part); encodeErr != nil {
			break
		}
	}
	if err := errors.Join(encodeErr, eg.Wait()); err != nil {
		return err
	}
	for _, b := range bs {
		b.gen.noteStored(b.metadata)
	}
	return nil
}

// byGeneration divides batches into runs of one generation each; requests that were decoded before and after a rotation may share a group.
func byGeneration(bs []*batch) [][]*batch {
	var out [][]*batch
	for i, b := range bs {
		if i == 0 || b.gen != bs[i-1].gen {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], b)
	}
	return out
}

func (t *tenantIngest) flushGeneration(ctx context.Context, eg *errgroup.Group, bs []*batch) error {
	g := bs[0].gen
	g.table.RLock()
	view := g.table.View()
	g.table.RUnlock()
	g.order.Extend(&view)
	windows := partition(bs, t.stage.now().UnixMilli())
	for _, w := range windows {
		file, _, err := t.writer.Write(assemble(w, &view, &g.order))
		if err != nil {
			return fmt.Errorf("encode segment: %w", err)
		}
		if len(windows) > 1 { // the writer's buffer is about to be used again
			file = bytes.Clone(file)
		}
		k := key.Segment{Tenant: t.id, Window: w.start, ID: t.stage.ids.next(t.stage.now())}
		put := func() error { return t.put(ctx, k, file) }
		if len(windows) == 1 {
			if err := put(); err != nil {
				return err
			}
			continue
		}
		eg.Go(put)
	}
	return nil
}

func (t *tenantIngest) put(ctx context.Context, k key.Segment, file []byte) error {
	if _, err := t.stage.store.Put(ctx, k.String(), bytes.NewReader(file), objstore.Condition{IfAbsent: true}); err != nil {
		return fmt.Errorf("put segment: %w", err)
	}
	t.stage.met.stored(len(file))
	return nil
}
