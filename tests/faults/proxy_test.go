package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"
)

// proxy stands between a server and the gateway and lets faults befall some requests. What it has
// passed on it follows to the end, so that close can wait for it.
type proxy struct {
	world  *world
	name   string // of the server
	target *url.URL
	srv    *httptest.Server

	mu       sync.Mutex
	rng      *rand.Rand
	stubborn map[string]*again // by method and path
	closed   bool
	inside   sync.WaitGroup
}

// again is a fault that befalls the next requests for one key, too.
type again struct {
	fault fault
	left  int
}

// fault is what befalls a request.
type fault int

const (
	none       fault = iota
	busy             // answered with 503, without effect
	broken           // answered with 500, without effect
	dropBefore       // no answer, without effect
	dropAfter        // no answer, with effect
	failAfter        // answered with 500, with effect
	truncate         // a part of the answer, with effect
	late             // passed on after a while, even if the server has given up
	kinds
)

func (f fault) String() string {
	return [...]string{"", "busy", "broken", "dropped before", "dropped after", "failed after", "truncated", "late"}[f]
}

const (
	faultRate = 20 // one of this number of requests
	// mostAgain is less than the store's attempts of one request, so that stubborn faults end
	// before most of its patience does.
	mostAgain = 6
	shortWait = time.Second
	longWait  = flushTimeout * 3 / 2
)

func newProxy(w *world, name string) *proxy {
	p := &proxy{world: w, name: name, target: w.gateway, rng: rand.New(rand.NewPCG(w.draw(), 0)), stubborn: map[string]*again{}}
	p.srv = httptest.NewServer(p)
	return p
}

func (p *proxy) url() string { return p.srv.URL }

// close refuses what comes from now on, and waits until everything that was passed on has had its
// effect.
func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.inside.Wait()
	p.srv.CloseClientConnections()
	p.srv.Close()
}

// enter draws the fate of a request.
func (p *proxy) enter(r *http.Request) (f fault, wait time.Duration, cut int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		panic(http.ErrAbortHandler)
	}
	p.inside.Add(1)
	wait, cut = time.Duration(p.rng.Int64N(int64(shortWait))), p.rng.IntN(1000)
	if p.rng.IntN(20) == 0 {
		wait = time.Duration(p.rng.Int64N(int64(longWait)))
	}
	key := r.Method + " " + r.URL.Path
	if s := p.stubborn[key]; s != nil {
		if s.left--; s.left == 0 {
			delete(p.stubborn, key)
		}
		return s.fault, wait, cut
	}
	if p.rng.IntN(faultRate) > 0 {
		return none, 0, 0
	}
	f = 1 + fault(p.rng.IntN(int(kinds)-1))
	if f != late && p.rng.IntN(5) == 0 {
		p.stubborn[key] = &again{f, 1 + p.rng.IntN(mostAgain-1)}
	}
	return f, wait, cut
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f, wait, cut := p.enter(r)
	defer p.inside.Done()
	defer func() { p.world.note(p.name, r, f) }()
	switch f {
	case busy:
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return
	case broken:
		refuse(w, http.StatusInternalServerError, "InternalError")
		return
	case dropBefore:
		panic(http.ErrAbortHandler)
	case late:
		time.Sleep(wait)
	}
	res, body := p.world.pass(r, sent)
	switch f {
	case dropAfter:
		panic(http.ErrAbortHandler)
	case failAfter:
		refuse(w, http.StatusInternalServerError, "InternalError")
		return
	}
	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(res.StatusCode)
	if f == truncate && len(body) > 0 {
		_, _ = w.Write(body[:cut%len(body)])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body) // the server may be gone
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>injected</Message></Error>`, code)
}

// pass has the gateway answer a request, whose signed Host header stays as it is. It does not give
// up when the server does.
func (w *world) pass(r *http.Request, sent []byte) (*http.Response, []byte) {
	if res, ok := w.lies(r); ok {
		return res, nil
	}
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.RequestURI, out.URL.Scheme, out.URL.Host = "", w.gateway.Scheme, w.gateway.Host
	out.Body = io.NopCloser(bytes.NewReader(sent))
	out.Header.Del("Expect")
	res, err := w.transport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return res, body
}
