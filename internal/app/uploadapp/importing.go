package uploadapp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"

	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/senders/promblock"
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
	if slices.Contains(q.waiting, u) {
		return
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

// attempt imports an upload, and tries again while the store fails. The end of ctx is orderly, so
// the attempt does not count then.
func (s *stage) attempt(ctx context.Context, u key.Upload) {
	log := s.log.With("tenant", u.Tenant, "block", u.ID.String())
	var state State // with which the attempt has begun
	for n := 0; ctx.Err() == nil; n++ {
		err := s.bring(ctx, u, &state, log)
		if err != nil && ctx.Err() == nil && state.Exists() && (n >= len(s.times.pauses) || isFinal(err)) {
			err = s.fail(ctx, u, state, err, log)
		}
		if err == nil {
			return
		}
		if errors.Is(err, ErrState) { // others wait
			log.Error("an uploaded block is not imported: the state of its upload cannot be read", "key", u.File(key.UploadState), "err", err)
			s.ended.WithLabelValues("unreadable").Inc()
			return
		}
		pause := s.times.pauses[min(n, len(s.times.pauses)-1)]
		log.Warn("the import of an uploaded block is tried again", "after", pause, "err", err)
		_ = smithytime.SleepWithContext(ctx, pause) // the loop sees that ctx has ended
	}
	s.giveBack(ctx, u, state, log)
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

// giveBackTimeout bounds giveBack.
const giveBackTimeout = 5 * time.Second

// errMoved reports an upload that another process has taken further.
var errMoved = errors.New("the upload has changed")

// bring imports an upload that is validating, and then deletes its files. state becomes the one in
// which the attempt has begun; with that, bring may be called again.
func (s *stage) bring(ctx context.Context, u key.Upload, state *State, log *slog.Logger) error {
	im := s.im
	im.Tenant = u.Tenant
	if err := s.memory.Acquire(ctx, im.MemoryLimit); err != nil {
		return err
	}
	defer s.memory.Release(im.MemoryLimit)
	if !state.Exists() {
		begun, err := s.begin(ctx, u, log)
		if err != nil || begun.Result != Validating {
			return err
		}
		*state = begun
	}
	src := importapp.Staged{Store: s.store, Prefix: u.Prefix(), Meta: state.Meta, Files: map[string]string{}}
	for _, f := range state.Files {
		src.Files[f.Path] = f.ETag
	}
	r, err := importapp.Share(ctx, s.store, im, src, s.now)
	if err != nil {
		return err
	}
	ended, err := s.end(ctx, u, *state, state.Complete())
	if err != nil || !ended {
		return err
	}
	s.ended.WithLabelValues(string(Complete)).Inc()
	log.Info("imported an uploaded block", "blocks", r.Blocks, "samples", r.Samples, "bytes", r.Bytes)
	if err := s.remove(ctx, u); err != nil {
		log.Warn("files of an imported upload were not deleted; that is tried again later", "err", err)
	}
	return nil
}

// begin counts an attempt to import an upload, before any of its files is read. The state that it
// returns is validating, unless there is nothing to import or there were too many attempts.
func (s *stage) begin(ctx context.Context, u key.Upload, log *slog.Logger) (State, error) {
	began := false
	state, err := s.change(ctx, u, func(current State) (State, error) {
		if began = current.Exists() && current.Result == Validating; began {
			return current.Begin(), nil
		}
		return current, nil
	})
	if err == nil && began && state.Result == Failed {
		s.failed(state, log)
	}
	return state, err
}

// giveBack takes back the count of an attempt that ends in an orderly way, as ctx has.
func (s *stage) giveBack(ctx context.Context, u key.Upload, state State, log *slog.Logger) {
	if !state.Exists() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	_, err := s.change(ctx, u, func(current State) (State, error) {
		if current.ID != state.ID {
			return current, nil
		}
		return current.GiveBack(), nil
	})
	if err != nil {
		log.Warn("an import that ended with the process counts as an attempt", "err", err)
	}
}

// fail enters the error of an import in the state. The files stay, so that the client can finish
// the upload again.
func (s *stage) fail(ctx context.Context, u key.Upload, state State, cause error, log *slog.Logger) error {
	last := state.Fail(cause)
	ended, err := s.end(ctx, u, state, last)
	if ended {
		s.failed(last, log)
	}
	return err
}

// failed logs and counts an upload that has failed.
func (s *stage) failed(state State, log *slog.Logger) {
	log.Error("an uploaded block was not imported", "err", state.Error)
	s.ended.WithLabelValues(string(state.Result)).Inc()
}

// end replaces the state of an attempt by the last one, and reports whether it was still there. All
// samples count even if another attempt has begun or failed meanwhile with the same files.
func (s *stage) end(ctx context.Context, u key.Upload, state, last State) (bool, error) {
	_, err := s.change(ctx, u, func(current State) (State, error) {
		if current.ID == state.ID || last.Result == Complete && current.Exists() && current.Same(&state) {
			return last, nil
		}
		return current, errMoved
	})
	if errors.Is(err, errMoved) {
		return false, nil
	}
	return err == nil, err
}
