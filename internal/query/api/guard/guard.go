// Package guard stands before the handlers of the query API: it bounds what a request may send,
// take and wait for, determines its tenant, and answers for handlers that panic.
package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// bodyTooLarge reports that a request's body exceeds the limit in bytes.
type bodyTooLarge struct{ Limit int64 }

// Error implements error.
func (e *bodyTooLarge) Error() string {
	return settings.ForOperator(fmt.Sprintf("request body exceeds the limit of %d bytes; raise --web.max-body-bytes", e.Limit))
}

// Guard wraps handlers. It is immutable.
type Guard struct {
	Respond      respond.Responder
	WriteTimeout time.Duration // of each piece of an answer
	MaxBodyBytes int64
	Federated    []string // paths of routes that answer from several tenants
	MaxTenants   int      // of one request
	Expressions  expression.Limits
	Refused      *prometheus.CounterVec // rejected requests by the flag of the exceeded limit
	Memory       *memory.Budget         // of the process; nil: no limit
}

// Wrap wraps the route of a path: it recovers from panics, determines the tenant, limits the body,
// the expressions and the memory, and disconnects clients that do not read the answer.
func (g *Guard) Wrap(path string, next http.Handler) http.Handler {
	return g.written(path, g.withTenant(path, g.withBody(g.bounded(g.budgeted(next)))))
}

// written disconnects clients that do not read: each piece of an answer must be written within
// Guard.WriteTimeout. The whole answer has no time limit but the query's. It answers a panic with
// 500 and logs it. If the response has begun, it aborts the connection instead, so that the client
// notices that the response is incomplete.
func (g *Guard) written(path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, r := originOf(path, r)
		tw := &writer{ResponseWriter: w, control: http.NewResponseController(w), timeout: g.WriteTimeout, origin: origin}
		defer tw.end()
		defer func() {
			p := recover()
			switch {
			case p == nil:
				return
			case p == http.ErrAbortHandler:
				panic(p)
			}
			g.Respond.Logger.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			if tw.began {
				panic(http.ErrAbortHandler)
			}
			w.Header().Del("Content-Encoding") // the compressor that set it did not write the body
			g.Respond.Error(tw, r, respond.Failure{Kind: "internal", Code: http.StatusInternalServerError}, errors.New("internal error, see the server's log"))
		}()
		next.ServeHTTP(tw, r)
	})
}

// withTenant puts the request's tenant into its context, or several that it names.
func (g *Guard) withTenant(path string, next http.Handler) http.Handler {
	federated := slices.Contains(g.Federated, path)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := tenant.AllFromRequest(r)
		switch n := 1 + strings.Count(id, tenant.Separator); {
		case err != nil || n == 1:
		case !federated:
			err = fmt.Errorf("%s answers from one tenant, and the header %s names %d", path, tenant.Header, n)
		case n > g.MaxTenants:
			err = errors.New(settings.ForOperator(fmt.Sprintf("the header %s names %d tenants, and a query may read from %d; raise --tenant-federation.max-tenants", tenant.Header, n, g.MaxTenants)))
		}
		if err != nil {
			g.Respond.Error(w, r, respond.BadData, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(tenant.With(r.Context(), id)))
	})
}

// withBody reads the body of a request of any method before the handler runs: handlers also parse
// forms from the body of a GET. They ignore errors when they parse forms, so a limit inside the
// body's reader would look like a shorter form.
func (g *Guard) withBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		tooLarge := &bodyTooLarge{Limit: g.MaxBodyBytes}
		if r.ContentLength > g.MaxBodyBytes {
			g.Respond.Error(w, r, respond.Failure{Kind: "bad_data", Code: http.StatusRequestEntityTooLarge}, tooLarge)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.MaxBodyBytes))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			g.Respond.Error(w, r, respond.Failure{Kind: "bad_data", Code: http.StatusRequestEntityTooLarge}, tooLarge)
			return
		}
		if err != nil {
			g.Respond.Error(w, r, respond.BadData, fmt.Errorf("read request body: %w", err))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

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
