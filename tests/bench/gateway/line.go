package gateway

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// line is the way to the bucket: each request takes its delay longer.
type line struct {
	mu     sync.Mutex
	idle   sync.Cond // on mu: no request is on its way
	active int       // requests on their way
	delay  time.Duration
	times  []span
}

func newLine() *line {
	l := &line{}
	l.idle.L = &l.mu
	return l
}

// span is when a request began and when it had been answered.
type span struct{ begun, ended time.Time }

// through returns a handler that delays and counts the requests to another one.
func (l *line) through(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		l.mu.Lock()
		delay := l.delay
		l.active++
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.times = append(l.times, span{begun, time.Now()})
			if l.active--; l.active == 0 {
				l.idle.Broadcast()
			}
		}()
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
		}
		h.ServeHTTP(w, r)
	})
}

// wait waits for the requests that are on their way. The caller holds mu.
func (l *line) wait() {
	for l.active > 0 {
		l.idle.Wait()
	}
}

// Delay makes each later request take d longer.
func (g *Gateway) Delay(d time.Duration) {
	g.line.mu.Lock()
	defer g.line.mu.Unlock()
	g.line.delay = d
}

// Count waits for the requests that are on their way. It returns the number of requests that were
// answered since the last call, and the number of
// round trips among them: the largest number of requests of which each began after the end of the
// one before.
func (g *Gateway) Count() (requests, trips int) {
	g.line.mu.Lock()
	defer g.line.mu.Unlock()
	g.line.wait()
	times := g.line.times
	g.line.times = nil
	return len(times), roundTrips(times)
}

// slack is how much later than its client a request may be found to be answered.
const slack = time.Millisecond

func roundTrips(times []span) (n int) {
	times = slices.SortedFunc(slices.Values(times), func(a, b span) int { return a.ended.Compare(b.ended) })
	var last time.Time
	for _, t := range times {
		if !t.begun.Before(last.Add(-slack)) {
			n, last = n+1, t.ended
		}
	}
	return n
}
