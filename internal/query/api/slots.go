package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/promlake/promlake/internal/tenant"
)

// slots bound the requests of a tenant that run at once, so that no tenant has all of what the process runs at once. They are safe for
// concurrent use.
type slots struct {
	size int // of each tenant

	mu      sync.Mutex
	tenants map[string]*tenantSlots // those with requests
}

// tenantSlots are one tenant's.
type tenantSlots struct {
	places chan struct{} // one token for each running request
	users  int           // requests that run or wait; of the mutex of slots
}

func newSlots(size int) *slots { return &slots{size: max(1, size), tenants: map[string]*tenantSlots{}} }

// enter waits for a place, which leave gives back, or for ctx.
func (s *slots) enter(ctx context.Context, id string) (leave func(), err error) {
	t := s.use(id)
	select {
	case t.places <- struct{}{}:
		return func() { <-t.places; s.done(id, t) }, nil
	case <-ctx.Done():
		s.done(id, t)
		return nil, fmt.Errorf("wait for one of %d remote reads of tenant %s (--storage.remote.read-concurrent-limit): %w", s.size, id, ctx.Err())
	}
}

func (s *slots) use(id string) *tenantSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[id]
	if t == nil {
		t = &tenantSlots{places: make(chan struct{}, s.size)}
		s.tenants[id] = t
	}
	t.users++
	return t
}

func (s *slots) done(id string, t *tenantSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(s.tenants, id)
	}
}

// shared lets a tenant have half of the remote reads that run at once, at most. Upstream's handler has one queue for all.
func (s *server) shared(next http.Handler) http.Handler {
	places := newSlots(s.settings.RemoteReadConcurrency / 2)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := places.enter(r.Context(), tenant.From(r.Context()))
		if err != nil {
			err = classify(r.Context(), err)
			http.Error(w, err.Error(), failureOf(err).code)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}
