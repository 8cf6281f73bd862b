package guard

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// slots are the remote reads of one tenant.
type slots struct {
	places chan struct{} // holds one token per running request
	users  int           // running and waiting requests
}

// Shared bounds the concurrent remote reads of each tenant, so that no tenant can use all of the
// process's capacity: upstream's handler has one queue for all tenants.
func Shared(size int, next http.Handler) http.Handler {
	var mu sync.Mutex
	tenants := map[string]*slots{} // only tenants with requests; guarded by mu, and so are users
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		id := tenant.From(ctx)
		mu.Lock()
		s := tenants[id]
		if s == nil {
			s = &slots{places: make(chan struct{}, size)}
			tenants[id] = s
		}
		s.users++
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			if s.users--; s.users == 0 {
				delete(tenants, id)
			}
		}()
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
			next.ServeHTTP(w, r)
		case <-ctx.Done():
			err := respond.Classify(ctx, fmt.Errorf("wait for one of %d remote reads of tenant %s (--storage.remote.read-concurrent-limit): %w", size, id, ctx.Err()))
			http.Error(w, err.Error(), respond.FailureOf(err).Code)
		}
	})
}
