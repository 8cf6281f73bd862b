package guard

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// slots bounds the concurrent requests of each tenant, so that no tenant can use all of the
// process's capacity. It is safe for concurrent use.
type slots struct {
	size int // of each tenant

	mu      sync.Mutex
	tenants map[string]*tenantSlots // only tenants with requests
}

// tenantSlots is the state of one tenant.
type tenantSlots struct {
	places chan struct{} // holds one token per running request
	users  int           // running and waiting requests; guarded by slots.mu
}

// enter waits for a slot or for the end of ctx. The caller must call leave to release the slot.
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

// Shared bounds the concurrent remote reads of each tenant. Upstream's handler has one queue for
// all tenants.
func Shared(size int, next http.Handler) http.Handler {
	places := &slots{size: size, tenants: map[string]*tenantSlots{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := places.enter(r.Context(), tenant.From(r.Context()))
		if err != nil {
			err = respond.Classify(r.Context(), err)
			http.Error(w, err.Error(), respond.FailureOf(err).Code)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}
