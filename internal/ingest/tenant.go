package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/remotewrite"
	"github.com/promlake/promlake/internal/segment"
)

// tenantIngest is one tenant's part of the stage: what it has learned, and what collects its requests and makes segments of them.
type tenantIngest struct {
	stage  *Stage
	id     string
	groups *collector // counts the requests under way in every mode; groups form, and a flusher takes them, in mode Grouped only
	gen    atomic.Pointer[remotewrite.Generation]
	done   chan struct{} // closed when no flusher runs (any more)
	used   time.Time     // when the last request came; guarded by Stage.mu

	mu     sync.Mutex // guards what encoding uses: the fields below and the orders of the generations
	writer *segment.Writer

	rotating sync.Mutex // guards what replacing the generation uses; never held while a segment is written
	window   key.Window // wall-clock window of the generation
	counted  int64      // bytes of the generation that stage.known has
}

func (s *Stage) newTenant(id string) (*tenantIngest, error) {
	w, err := segment.NewWriter()
	if err != nil {
		return nil, err
	}
	t := &tenantIngest{
		stage: s, id: id, writer: w, done: make(chan struct{}),
		groups: newCollector(s.set.pace(s.store), s.now),
		window: key.WindowOf(s.now().UnixMilli()),
	}
	t.gen.Store(s.newGeneration())
	if s.set.Mode == Grouped {
		go t.run()
	} else {
		close(t.done)
	}
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

// commit makes a group durable and releases its requests.
func (t *tenantIngest) commit(g *group) {
	begin := t.stage.now()
	ctx, cancel := context.WithTimeout(t.stage.ctx, t.stage.set.FlushTimeout)
	err := t.flush(ctx, g.batches)
	cancel()
	t.stage.met.flushed(remotewrite.TallyOf(g.batches...), err, t.stage.now().Sub(begin))
	if err != nil {
		e := notDurable(err)
		t.stage.log.Error("flush failed; senders were told to try again", "reference", e.reference, "tenant", t.id, "samples", g.samples, "requests", len(g.batches), "err", err)
		err = e
	}
	g.finish(err)
	t.groups.flushed()
	t.rotate()
}

// maxParallelPuts bounds the segments of one flush that are written at the same time.
const maxParallelPuts = 8

// flush writes one segment per generation (mostly one) and window. It returns nil only when all of them are durable.
func (t *tenantIngest) flush(ctx context.Context, bs []*remotewrite.Batch) error {
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(maxParallelPuts)
	encodeErr := t.encode(bs, t.nextID, func(k key.Segment, file []byte, only bool) error {
		if only {
			return t.put(ctx, k, file)
		}
		file = bytes.Clone(file)
		eg.Go(func() error { return t.put(ctx, k, file) })
		return nil
	})
	if err := errors.Join(encodeErr, eg.Wait()); err != nil {
		return err
	}
	for _, b := range bs {
		b.Generation.Stored.Note(b.Metadata)
	}
	return nil
}

// nextID returns an identifier for a segment that is written now.
func (t *tenantIngest) nextID() identity { return identity{id: t.stage.ids.next(t.stage.now())} }

// identity is what makes the key of a segment its own.
type identity struct {
	id     ulid.ULID
	queued bool
}

// encode makes the segments of batches and hands each to put. The file is valid until put returns; only says that no other one follows it
// of the same generation.
func (t *tenantIngest) encode(bs []*remotewrite.Batch, name func() identity, put func(k key.Segment, file []byte, only bool) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, part := range byGeneration(bs) {
		g := part[0].Generation
		g.Table.RLock()
		view := g.Table.View()
		g.Table.RUnlock()
		g.Order.Extend(&view)
		windows := partition(part, t.stage.now().UnixMilli())
		for _, w := range windows {
			file, _, err := t.writer.Write(assemble(w, &view, &g.Order))
			if err != nil {
				return fmt.Errorf("encode segment: %w", err)
			}
			n := name()
			if err := put(key.Segment{Tenant: t.id, Window: w.start, ID: n.id, Queued: n.queued}, file, len(windows) == 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// byGeneration divides batches into runs of one generation each; requests that were decoded before and after a rotation may share a group.
func byGeneration(bs []*remotewrite.Batch) [][]*remotewrite.Batch {
	var out [][]*remotewrite.Batch
	for i, b := range bs {
		if i == 0 || b.Generation != bs[i-1].Generation {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], b)
	}
	return out
}

// put is the one place where ingest writes.
func (t *tenantIngest) put(ctx context.Context, k key.Segment, file []byte) error {
	if _, err := t.stage.store.Put(ctx, k.String(), bytes.NewReader(file), objstore.Condition{IfAbsent: true}); err != nil {
		return fmt.Errorf("put segment: %w", err)
	}
	t.stage.met.stored(len(file))
	return nil
}

// encoded is a segment that waits for its put.
type encoded struct {
	key  key.Segment
	file []byte
}

// segments is encode for puts that begin when all segments are made.
func (t *tenantIngest) segments(bs []*remotewrite.Batch, name func() identity) ([]encoded, error) {
	var out []encoded
	err := t.encode(bs, name, func(k key.Segment, file []byte, _ bool) error {
		out = append(out, encoded{k, bytes.Clone(file)})
		return nil
	})
	return out, err
}

// putAll returns nil only when all segments are durable. No put is under way any more when it returns.
func putAll(ctx context.Context, all []encoded, put func(context.Context, key.Segment, []byte) error) error {
	if len(all) == 1 {
		return put(ctx, all[0].key, all[0].file)
	}
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(maxParallelPuts)
	for _, e := range all {
		eg.Go(func() error { return put(ctx, e.key, e.file) })
	}
	return eg.Wait()
}
