package compact

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/promlake/promlake/internal/store/objstore"
)

var errDead = errors.New("the process is dead")

// mortal is a store as a process has it that dies at one of its requests, before or after its
// effect.
type mortal struct {
	objstore.Store
	mu    sync.Mutex
	left  int // requests until then; below 0: it lives for ever
	after bool
	dead  bool
}

// step counts a request. do is whether it has an effect; err is the error that the process gets.
func (m *mortal) step() (do bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, errDead
	}
	if m.left--; m.left != -1 {
		return true, nil
	}
	m.dead = true
	return m.after, errDead
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if _, err := m.step(); err != nil {
		return nil, objstore.Object{}, err
	}
	return m.Store.Get(ctx, k, offset, length)
}

func (m *mortal) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (etag string, err error) {
	do, dead := m.step()
	if do {
		etag, err = m.Store.Put(ctx, k, body, cond)
	}
	if dead != nil {
		return "", dead
	}
	return etag, err
}

func (m *mortal) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	if _, err := m.step(); err != nil {
		return func(yield func(objstore.Object, error) bool) { yield(objstore.Object{}, err) }
	}
	return m.Store.List(ctx, prefix, startAfter)
}

func (m *mortal) Delete(ctx context.Context, k string) (err error) {
	do, dead := m.step()
	if do {
		err = m.Store.Delete(ctx, k)
	}
	if dead != nil {
		return dead
	}
	return err
}
