package process

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
)

const healthyPath, readyPath = "/-/healthy", "/-/ready"

// gate answers for the process before its stages exist and while they drain:
//
//	           /-/healthy   /-/ready   everything else
//	starting   200          503        503
//	open       200          200        the stages
//	lost       200          503        503, except for /metrics: the store is gone or another one
//	draining   200          503        the stages, on connections that are still open
type gate struct {
	store    store
	stages   atomic.Pointer[http.Handler] // nil while starting
	draining atomic.Bool
}

// store is what a gate asks of a probe.Rooted.
type store interface {
	Root(ctx context.Context) error
	Writes() error
}

// open lets requests pass. store may be nil.
func (g *gate) open(h http.Handler, store store) {
	g.store = store
	g.stages.Store(&h)
}

func (g *gate) drain() { g.draining.Store(true) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := g.stages.Load()
	var lost error
	if h != nil && g.store != nil && r.URL.Path != "/metrics" {
		lost = g.store.Root(r.Context())
	}
	switch {
	case r.URL.Path == healthyPath:
		answer(w, http.StatusOK, "Promlake is healthy.\n")
	case lost != nil:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusServiceUnavailable, "Promlake cannot use its store: "+lost.Error()+".\n")
	case r.URL.Path == readyPath && h != nil && !g.draining.Load() && g.store != nil && g.store.Writes() != nil:
		answer(w, http.StatusOK, "Promlake is ready, but "+g.store.Writes().Error()+".\n")
	case r.URL.Path == readyPath && h != nil && !g.draining.Load():
		answer(w, http.StatusOK, "Promlake is ready.\n")
	case r.URL.Path == readyPath && h != nil:
		answer(w, http.StatusServiceUnavailable, "Promlake is shutting down.\n")
	case h == nil:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusServiceUnavailable, "Promlake is starting.\n")
	case g.store == nil:
		(*h).ServeHTTP(w, r)
	default:
		(*h).ServeHTTP(&lostWriter{w, r, g.store}, r)
	}
}

// lostWriter answers a request with 503 instead of 500 if the store is lost: that of a bucket shows
// only while a request finds nothing there.
type lostWriter struct {
	http.ResponseWriter
	r     *http.Request
	store store
}

// WriteHeader implements http.ResponseWriter.
func (w *lostWriter) WriteHeader(code int) {
	if code == http.StatusInternalServerError && w.store.Root(w.r.Context()) != nil {
		code = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	w.ResponseWriter.WriteHeader(code)
}

// Flush implements http.Flusher, which upstream's handlers ask for.
func (w *lostWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap serves http.ResponseController.
func (w *lostWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_, _ = io.WriteString(w, text)
}

// What is read of a body after its request was answered.
const (
	drainBytes = 64 << 20
	drainTime  = 10 * time.Second
)

// draining reads what a handler leaves of a request's body, within limits, before the server sends
// the answer: a client that sends everything before it reads would be reset while it sends, and
// never see why it was refused. A client that waits for 100 (Continue) has sent nothing.
func draining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || r.Header.Get("Expect") != "" {
			next.ServeHTTP(w, r)
			return
		}
		body := &drainedBody{ReadCloser: r.Body}
		r.Body = body
		next.ServeHTTP(w, r)
		if !body.ended {
			// Where a deadline cannot be set or nothing can be read, the connection is gone.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
			_, _ = io.CopyN(io.Discard, body, drainBytes)
		}
	})
}

// drainedBody knows whether its end was read. Only then does net/http wait for the next request,
// and a deadline would end that wait.
type drainedBody struct {
	io.ReadCloser
	ended bool
}

// Read implements io.Reader.
func (b *drainedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

// aliased serves the paths of Amazon Managed Service for Prometheus ("Prometheus-compatible APIs"
// in its user guide), so that its clients need only another host:
//
//	/workspaces/{id}/api/v1/…   is /api/v1/… of the tenant {id}, unless the request names a tenant
//	/api/v1/remote_write        is /api/v1/write
//
// The guards are behind it: they see the other path and the tenant.
func aliased(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.URL.EscapedPath()
		path, id := sent, ""
		if rest, ok := strings.CutPrefix(sent, "/workspaces/"); ok {
			if workspace, below, _ := strings.Cut(rest, "/"); workspace != "" && strings.HasPrefix(below, "api/v1/") {
				path, id = "/"+below, workspace
			}
		}
		if path == "/api/v1/remote_write" {
			path = "/api/v1/write"
		}
		if path != sent {
			r = r.Clone(r.Context())
			// The parts of an escaped path are escaped correctly.
			r.URL.Path, _ = url.PathUnescape(path)
			r.URL.RawPath = path
			if id, _ = url.PathUnescape(id); id != "" && len(r.Header.Values(tenant.Header)) == 0 {
				r.Header.Set(tenant.Header, id)
			}
		}
		next.ServeHTTP(w, r)
	})
}
