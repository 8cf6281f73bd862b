package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// port is the store as one process sees it: every operation waits for its turn.
type port struct{ p *proc }

var _ objstore.Store = (*port)(nil)

// turn waits for the operation's turn. If it returns no error, the operation takes effect and then
// fails with the returned failure, if any.
func (s *port) turn(ctx context.Context, kind memstore.Op, k string) (_ context.Context, failure, err error) {
	w := s.p.w
	w.mu.Lock()
	if s.p.dead {
		w.mu.Unlock()
		return ctx, nil, errDead
	}
	o := &op{p: s.p, kind: kind, key: k, grant: make(chan verdict)}
	w.pending = append(w.pending, o)
	w.mu.Unlock()
	v := <-o.grant
	switch {
	case v.before && v.dead:
		return ctx, nil, errDead
	case ctx.Err() != nil && !v.late:
		return ctx, nil, ctx.Err()
	case v.before:
		return ctx, nil, fault(kind, k)
	case v.dead:
		return context.WithoutCancel(ctx), errDead, nil
	case v.after:
		return context.WithoutCancel(ctx), fault(kind, k), nil
	}
	return context.WithoutCancel(ctx), nil, nil
}

func fault(kind memstore.Op, k string) error { return fmt.Errorf("%s %s: %w", kind, k, errFault) }

func (s *port) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	ctx, failure, err := s.turn(ctx, memstore.Get, k)
	if err != nil || failure != nil {
		return nil, objstore.Object{}, first(err, failure)
	}
	if k == key.Manifest(tenant) {
		s.p.read = s.p.w.steps
	}
	return s.p.w.mem.Get(ctx, k, offset, length)
}

func (s *port) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	ctx, failure, err := s.turn(ctx, memstore.Put, k)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	b = s.tamper(k, b)
	etag, err := s.p.w.mem.Put(ctx, k, bytes.NewReader(b), cond)
	if err == nil {
		s.p.w.effect(k, b, etag, s.p.w.modified(k))
	}
	if err := first(err, failure); err != nil {
		s.regret(k, b)
		return "", err
	}
	return etag, nil
}

func (s *port) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		ctx, failure, err := s.turn(ctx, memstore.List, prefix)
		if err := first(err, failure); err != nil {
			yield(objstore.Object{}, err)
			return
		}
		if strings.HasPrefix(prefix, key.SegmentsPrefix(tenant)) {
			s.p.listed = s.p.w.steps
		}
		s.p.w.mem.List(ctx, prefix, startAfter)(yield)
	}
}

func (s *port) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return memstore.Folders(prefix, s.List(ctx, prefix, ""))
}

func (s *port) Delete(ctx context.Context, k string) error {
	ctx, failure, err := s.turn(ctx, memstore.Delete, k)
	if err != nil {
		return err
	}
	s.p.w.changed = true
	s.p.w.changes++
	return first(s.p.w.mem.Delete(ctx, k), failure)
}

// Now may be behind the store's clock, like an HTTP answer.
func (s *port) Now(ctx context.Context) (time.Time, error) {
	ctx, failure, err := s.turn(ctx, memstore.Now, "")
	if err := first(err, failure); err != nil {
		return time.Time{}, err
	}
	now, err := s.p.w.mem.Now(ctx)
	return now.Add(-time.Duration(s.p.rng.Int64N(int64(objstore.ClockLag)))), err
}

// modified returns the store's time of an object's put.
func (w *world) modified(k string) time.Time {
	_, o, err := w.mem.Get(context.Background(), k, 0, -1)
	if err != nil {
		panic(err)
	}
	return o.Modified
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// tamper makes a committer violate the protocol: its new blocks claim to have every tombstone
// applied.
func (s *port) tamper(k string, b []byte) []byte {
	if s.p.w.set.broken != ignoresTombstones || k != key.Manifest(tenant) {
		return b
	}
	m, err := catalog.Decode(b)
	if err != nil {
		panic(err)
	}
	old, _, err := catalog.ReadManifest(context.Background(), s.p.w.mem, tenant)
	if err != nil {
		panic(err)
	}
	for i := range m.Blocks {
		if !named(old, m.Blocks[i]) {
			m.Blocks[i].DeletesThrough = m.LastTombstone
		}
	}
	out, err := catalog.Encode(m)
	if err != nil {
		panic(err)
	}
	return out
}

// regret makes a committer violate the protocol: it deletes its new object when the commit fails.
func (s *port) regret(k string, b []byte) {
	if s.p.w.set.broken != deletesAfterFailure || k != key.Manifest(tenant) {
		return
	}
	m, err := catalog.Decode(b)
	if err != nil {
		panic(err)
	}
	for _, blk := range m.Blocks {
		if blk.ID.Time() > uint64(s.p.w.now.Add(-time.Minute).UnixMilli()) {
			s.p.w.erase(blk.Key(tenant).Prefix())
		}
	}
}

// erase deletes all objects under a prefix, without a turn.
func (w *world) erase(prefix string) {
	for _, k := range w.mem.Keys() {
		if strings.HasPrefix(k, prefix) {
			w.changed = true
			if err := w.mem.Delete(context.Background(), k); err != nil {
				panic(err)
			}
		}
	}
}

func named(m catalog.Manifest, b catalog.Block) bool {
	for _, o := range m.Blocks {
		if o.BlockID() == b.BlockID() {
			return true
		}
	}
	return false
}
