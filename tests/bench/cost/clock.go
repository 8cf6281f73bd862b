package cost

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/store/objstore"
)

// timed is a store with the lake's clock: the times of its objects are those at which the lake put
// them.
type timed struct {
	objstore.Store
	now func() time.Time

	mu   sync.Mutex
	last time.Time
	at   map[string]time.Time // by key
}

func newTimed(store objstore.Store, now func() time.Time) *timed {
	return &timed{Store: store, now: now, at: map[string]time.Time{}}
}

// tick returns the time, which is never the same twice. The caller holds t.mu.
func (t *timed) tick() time.Time {
	now := t.now()
	if !now.After(t.last) {
		now = t.last.Add(1)
	}
	t.last = now
	return now
}

func (t *timed) Now(context.Context) (time.Time, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tick(), nil
}

func (t *timed) Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	etag, err := t.Store.Put(ctx, key, body, cond)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.at[key] = t.tick()
	}
	return etag, err
}

func (t *timed) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	r, o, err := t.Store.Get(ctx, key, offset, length)
	return r, t.stamp(o), err
}

func (t *timed) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		for o, err := range t.Store.List(ctx, prefix, startAfter) {
			if !yield(t.stamp(o), err) {
				return
			}
		}
	}
}

func (t *timed) stamp(o objstore.Object) objstore.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.Modified = t.at[o.Key]
	return o
}
