package process

import (
	"io"
	"net/http"
	"sync/atomic"
)

const healthyPath, readyPath = "/-/healthy", "/-/ready"

// gate answers for the process before its stages exist and while they drain:
//
//	           /-/healthy   /-/ready   everything else
//	starting   200          503        503
//	open       200          200        the stages
//	draining   200          503        the stages, on connections that are still open
type gate struct {
	stages   atomic.Pointer[http.Handler] // nil while starting
	draining atomic.Bool
}

func (g *gate) open(h http.Handler) { g.stages.Store(&h) }

func (g *gate) drain() { g.draining.Store(true) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := g.stages.Load()
	switch {
	case r.URL.Path == healthyPath:
		answer(w, http.StatusOK, "Promlake is healthy.\n")
	case r.URL.Path == readyPath && h != nil && !g.draining.Load():
		answer(w, http.StatusOK, "Promlake is ready.\n")
	case r.URL.Path == readyPath && h != nil:
		answer(w, http.StatusServiceUnavailable, "Promlake is shutting down.\n")
	case h == nil:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusServiceUnavailable, "Promlake is starting.\n")
	default:
		(*h).ServeHTTP(w, r)
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_, _ = io.WriteString(w, text)
}
