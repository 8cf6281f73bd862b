package promapp

import (
	"sync"
	"time"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/prom/spool"
)

// Bounds of how long scrapes and results of rules wait for each other before they go to a directory.
const (
	minLinger = time.Second
	maxLinger = 4 * time.Second
	// lingerShare is the inverse of the part of the shortest interval for which they wait.
	lingerShare = 4
)

// pace sets how long samples wait for each other, by the shortest interval of all scrapes and groups
// of rules: fewer segments cost less to write, to read and to merge. It is safe for concurrent use.
// The nil pace sets nothing.
type pace struct {
	queue *spool.Spool

	mu        sync.Mutex
	intervals map[any]time.Duration // the shortest one of each origin that has any
}

// note sets the shortest interval of an origin; 0 means that it has none.
func (p *pace) note(origin any, shortest time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.intervals[origin] = shortest; shortest == 0 {
		delete(p.intervals, origin)
	}
	p.queue.SetLinger(lingerOf(p.intervals))
}

// lingerOf returns how long samples wait for each other.
func lingerOf(intervals map[any]time.Duration) time.Duration {
	out := maxLinger
	for _, d := range intervals {
		out = min(out, d/lingerShare)
	}
	return max(out, minLinger)
}

// scrapeInterval returns the shortest interval of scrapes, 0 if there are none.
func scrapeInterval(scrapes []*config.ScrapeConfig) (shortest time.Duration) {
	for _, s := range scrapes {
		shortest = shorter(shortest, time.Duration(s.ScrapeInterval))
	}
	return shortest
}

// groupInterval returns the shortest interval of groups of rules, 0 if there are none.
func groupInterval(groups []*rules.Group) (shortest time.Duration) {
	for _, g := range groups {
		shortest = shorter(shortest, g.Interval())
	}
	return shortest
}

// shorter returns the shorter one of two intervals, of which the first may be none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}
