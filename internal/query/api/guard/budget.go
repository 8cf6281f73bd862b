package guard

import (
	"context"
	"net/http"
	"time"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// unavailable answers a request that may be sent again unchanged.
func (g *Guard) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Retry-After", "1")
	g.Respond.Error(w, r, respond.Failure{Kind: "unavailable", Code: http.StatusServiceUnavailable}, err)
}

// memoryWait is how long a request waits for memory: the garbage of ended requests takes a moment
// to collect.
const memoryWait = 5 * time.Second

// budgeted makes each request a work of the process's budget: it is rejected, or ended later, if
// the process has no memory for it.
func (g *Guard) budgeted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, work, err := g.Begin(r.Context())
		if err != nil {
			g.unavailable(w, r, err)
			return
		}
		defer work.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Begin makes what follows a work of the process's budget, or fails if there is no memory for it.
func (g *Guard) Begin(ctx context.Context) (context.Context, *memory.Work, error) {
	if err := g.Memory.AcquireWithin(ctx, memoryWait, 0); err != nil {
		return nil, nil, err
	}
	return g.Memory.Start(ctx)
}
