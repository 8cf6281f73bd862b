package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/push"
	"github.com/promlake/promlake/internal/store/objstore"
)

// errContended reports that a group of pushed metrics was changed by others again and again.
var errContended = errors.New("the group is changed by too many pushes at once, try again")

const (
	// maxPushTries is how often a change of a group is tried while others change the group.
	maxPushTries = 16
	// pushRoom is the memory (bytes) that samples of a group take at first.
	pushRoom = 64 << 10
)

// PushHandler serves the requests of a Pushgateway: PUT and POST replace and add metrics of a
// group, DELETE ends them. The path is that of the group after prefix. Labels of the parameters
// extra_label become a part of the grouping key, so that senders with different ones do not end one
// another's series.
//
// A change reads the state of the group, makes its samples durable, and replaces the state by
// compare-and-swap. If somebody else has changed the group meanwhile, all of that is done again at
// a later time of samples. What a failed request leaves behind is part of the old state or ends
// with it: series of a push that was not acknowledged end when they are not written for the
// lookback of queries.
func (s *Stage) PushHandler(prefix string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.push(w, r, strings.TrimPrefix(r.URL.EscapedPath(), prefix))
		code := status(err)
		switch {
		case err == nil && r.Method == http.MethodDelete:
			code = http.StatusAccepted
		case err == nil:
			code = http.StatusOK
		}
		s.answeredWith(w, err, "pushgateway", code)
		if err != nil {
			http.Error(w, s.public(r, err, code), code)
			return
		}
		w.WriteHeader(code)
	})
}

// push changes the group that a path names.
func (s *Stage) push(w http.ResponseWriter, r *http.Request, path string) error {
	id, err := tenant.FromRequest(r)
	if err != nil {
		return fmt.Errorf("%w: %w", errTenant, err)
	}
	name, err := push.ParseGroup(path)
	if err != nil {
		return err
	}
	extra, err := extraLabels(r, &s.runtime.Current(r.Context()).Of(id).Limits)
	if err != nil {
		return err
	}
	if name, err = name.With(extra); err != nil {
		return err
	}
	g := pushGroup{s, id, name, key.Push(id, name.ID())}
	if r.Method == http.MethodDelete {
		return g.change(r.Context(), func(state push.State, now int64) (push.Change, error) { return state.Delete(name, now), nil })
	}
	err = g.write(w, r)
	if errors.Is(err, push.ErrInvalid) || is[*push.TooLarge](err) || is[*errWhole](err) {
		failed := g.change(r.Context(), func(state push.State, now int64) (push.Change, error) { return state.Fail(name, now), nil })
		if failed != nil {
			s.log.Warn("the time of a refused push could not be stored", "tenant", id, "err", failed)
		}
	}
	return err
}

// pushGroup is a group of pushed metrics.
type pushGroup struct {
	stage  *Stage
	tenant string
	name   push.Group
	key    string
}

// write takes a PUT or POST request through the stage.
func (g pushGroup) write(w http.ResponseWriter, r *http.Request) error {
	s := g.stage
	state, etag, err := g.load(r.Context())
	if err != nil {
		return err
	}
	var metrics *push.Metrics
	var change push.Change
	whole := r.Method == http.MethodPut
	replace := func(state push.State, now int64) (push.Change, error) {
		return state.Push(g.name, metrics, whole, now, s.set.Push)
	}
	_, err = s.write(w, r, wireFormat{form: "text", extra: true, decode: func(msg []byte, came time.Time, gen *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		var err error
		if metrics, err = push.Parse(push.Body{Text: msg, ContentType: r.Header.Get("Content-Type")}, g.name, s.set.Push, &room); err != nil {
			return nil, err
		}
		if change, err = replace(state, came.UnixMilli()); err != nil {
			return nil, err
		}
		return sourceOf(&change)(gen, rules, room)
	}})
	if err != nil {
		return err
	}
	if err := g.save(r.Context(), change.Next, etag); !errors.Is(err, objstore.ErrPrecondition) {
		return err
	}
	return g.change(r.Context(), replace)
}

// sourceOf returns the samples of a change, all or none.
func sourceOf(c *push.Change) Source {
	return func(gen *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		b, err := c.Batch(gen, rules, room)
		if err == nil && b.Err != nil {
			err = &errWhole{errPartial{b.Err, b.Rejected}}
			b.Release()
		}
		return b, err
	}
}

// change makes a change durable, again and again while others change the group.
func (g pushGroup) change(ctx context.Context, next func(state push.State, now int64) (push.Change, error)) error {
	for range maxPushTries {
		state, etag, err := g.load(ctx)
		if err != nil {
			return err
		}
		c, err := next(state, g.stage.now().UnixMilli())
		if err != nil || c.Empty() {
			return err
		}
		if _, err := g.stage.append(ctx, g.tenant, pushRoom, sourceOf(&c)); err != nil {
			return err
		}
		if err := g.save(ctx, c.Next, etag); !errors.Is(err, objstore.ErrPrecondition) {
			return err
		}
	}
	return errContended
}

// load reads the state of the group. etag is empty if it has none.
func (g pushGroup) load(ctx context.Context) (state push.State, etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.stage.set.FlushTimeout)
	defer cancel()
	b, o, err := objstore.ReadAll(ctx, g.stage.store, g.key)
	if errors.Is(err, objstore.ErrNotFound) {
		return state, "", nil
	}
	if err == nil {
		state, err = push.Decode(b)
		if err != nil && !errors.Is(err, push.ErrVersion) {
			// Series that the group had end when queries do not look back to them any more.
			g.stage.log.Error("the state of a group of pushed metrics is damaged and will be replaced", "tenant", g.tenant, "object", g.key, "err", err)
			return push.State{}, o.ETag, nil
		}
	}
	if err != nil {
		return state, "", fmt.Errorf("read the state of a group of pushed metrics: %w", err)
	}
	return state, o.ETag, nil
}

// save replaces the state with an ETag. The error is objstore.ErrPrecondition if it has changed. A
// store may repeat a put whose first answer was lost, and then find its own effect: that is no
// change, or the samples of the push would be written twice.
func (g pushGroup) save(ctx context.Context, state push.State, etag string) error {
	ctx, cancel := context.WithTimeout(ctx, g.stage.set.FlushTimeout)
	defer cancel()
	state.ID = newReference()
	b, err := state.Encode()
	if err != nil {
		return err
	}
	_, err = g.stage.store.Put(ctx, g.key, bytes.NewReader(b), objstore.Condition{IfAbsent: etag == "", IfMatch: etag})
	if errors.Is(err, objstore.ErrPrecondition) {
		if now, _, readErr := g.load(ctx); readErr == nil && now.ID == state.ID {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("write the state of a group of pushed metrics: %w", err)
	}
	if etag == "" && g.name.ID() < sweepBelow {
		g.stage.sweepPushes(ctx, g.tenant)
	}
	return nil
}

const (
	// sweepBelow selects the groups whose creation is followed by a sweep: those with a lower
	// identifier, which are one in 64. A count would be lost with each process that ends.
	sweepBelow = "04"
	// maxSwept is how many states a sweep deletes at most, because a request waits for it.
	maxSwept = 128
	// pushIdle is how long a state is kept after its last change. The series of a group that is
	// idle for longer than the lookback of queries are not seen any more, so they need no stale
	// markers.
	pushIdle = 7 * 24 * time.Hour
)

// sweepPushes deletes states that have not been changed for long, so that groups with names that
// nobody uses again leave nothing behind. It runs after a group was created.
func (s *Stage) sweepPushes(ctx context.Context, tenantID string) {
	now, err := s.store.Now(ctx)
	if err == nil {
		deleted := 0
		for o, e := range s.store.List(ctx, key.PushesPrefix(tenantID), "") {
			if err = e; err != nil {
				break
			}
			if _, _, e := key.ParsePush(o.Key); e != nil || now.Sub(o.Modified) < pushIdle {
				continue
			}
			if err = s.store.Delete(ctx, o.Key); err != nil {
				break
			}
			if deleted++; deleted == maxSwept {
				break
			}
		}
	}
	if err != nil {
		s.log.Warn("states of idle groups of pushed metrics were not deleted; that is tried again later", "tenant", tenantID, "err", err)
	}
}
