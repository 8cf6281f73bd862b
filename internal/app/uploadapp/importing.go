package uploadapp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/promblock"
	"github.com/promlake/promlake/internal/upload"
)

// queue are the uploads that wait for their import. The truth is in the store: an upload that was
// changed or imported meanwhile is left alone.
type queue struct {
	wake chan struct{} // has a token if uploads were added

	mu      sync.Mutex
	waiting []key.Upload // each once
}

// add appends an upload, unless it waits already.
func (q *queue) add(u key.Upload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, x := range q.waiting {
		if x == u {
			return
		}
	}
	q.waiting = append(q.waiting, u)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes the first upload, and waits for one until ctx ends.
func (q *queue) take(ctx context.Context) (key.Upload, bool) {
	for {
		q.mu.Lock()
		if len(q.waiting) > 0 {
			u := q.waiting[0]
			q.waiting = q.waiting[1:]
			q.mu.Unlock()
			return u, true
		}
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-ctx.Done():
			return key.Upload{}, false
		}
	}
}

// pauses are the waits before another attempt to import a block. The last one repeats while the
// store does not take the state of the failure, either.
var pauses = []time.Duration{time.Second, 10 * time.Second, time.Minute}

// importing imports one upload after another until ctx ends.
func (s *stage) importing(ctx context.Context) {
	for {
		u, ok := s.queue.take(ctx)
		if !ok {
			return
		}
		for n := 0; ; n++ {
			err := s.bring(ctx, u)
			if err != nil && ctx.Err() == nil && (n >= len(pauses) || isFinal(err)) {
				err = s.fail(ctx, u, err)
			}
			if err == nil || ctx.Err() != nil {
				break
			}
			pause := pauses[min(n, len(pauses)-1)]
			s.log.Warn("the import of an uploaded block is tried again", "tenant", u.Tenant, "block", u.ID.String(), "after", pause, "err", err)
			if !sleep(ctx, pause) {
				return
			}
		}
	}
}

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isFinal reports whether another attempt would end in the same error.
func isFinal(err error) bool {
	if _, ok := errors.AsType[*promblock.CorruptError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*bulk.MemoryError](err); ok {
		return true
	}
	return errors.Is(err, promblock.ErrFormat) || errors.Is(err, importapp.ErrChanged)
}

// errMoved reports an upload that another process has taken further.
var errMoved = errors.New("the upload has changed")

// bring imports an upload that is validating, and then deletes its files.
func (s *stage) bring(ctx context.Context, u key.Upload) error {
	state, _, err := s.read(ctx, u)
	if err != nil || state.Result != upload.Validating {
		return err
	}
	im := s.im
	im.Tenant = u.Tenant
	src := importapp.Staged{Store: s.store, Prefix: u.Prefix(), Meta: state.Meta, Files: map[string]string{}}
	for _, f := range state.Files {
		src.Files[f.Path] = f.ETag
	}
	if err := s.memory.Acquire(ctx, im.MemoryLimit); err != nil {
		return err
	}
	r, err := importapp.Share(ctx, s.store, im, src, s.now)
	s.memory.Release(im.MemoryLimit)
	if err != nil {
		return err
	}
	ended, err := s.end(ctx, u, state.ID, state.Complete())
	if err != nil || !ended {
		return err
	}
	s.log.Info("imported an uploaded block", "tenant", u.Tenant, "block", u.ID.String(), "blocks", r.Blocks, "samples", r.Samples, "bytes", r.Bytes)
	if err := s.remove(ctx, u); err != nil {
		s.log.Warn("files of an imported upload were not deleted; that is tried again later", "tenant", u.Tenant, "block", u.ID.String(), "err", err)
	}
	return nil
}

// fail enters the error of an import in the state. The files stay, so that the client can finish
// the upload again.
func (s *stage) fail(ctx context.Context, u key.Upload, cause error) error {
	state, _, err := s.read(ctx, u)
	if err != nil || state.Result != upload.Validating {
		return err
	}
	s.log.Error("an uploaded block was not imported", "tenant", u.Tenant, "block", u.ID.String(), "err", cause)
	_, err = s.end(ctx, u, state.ID, state.Fail(cause))
	return err
}

// end replaces the state with an ID by the last one of an attempt, and reports whether it was still
// there.
func (s *stage) end(ctx context.Context, u key.Upload, id string, last upload.State) (bool, error) {
	_, err := s.change(ctx, u, func(current upload.State) (upload.State, error) {
		if current.ID != id {
			return current, errMoved
		}
		return last, nil
	})
	if errors.Is(err, errMoved) {
		return false, nil
	}
	if err == nil {
		s.ended.WithLabelValues(string(last.Result)).Inc()
	}
	return err == nil, err
}
