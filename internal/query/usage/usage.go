// Package usage counts which metric names the queries of each tenant ask for, in the memory of one
// process.
package usage

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// maxLength is the longest name or pattern that is counted, in bytes.
	maxLength = 512
	// entryBytes is about what an entry takes in memory beside its name.
	entryBytes = 160
)

// Asked is how often queries asked for something.
type Asked struct {
	Queries uint64
	Last    time.Time // zero if none did
}

func (a *Asked) add(b Asked) {
	a.Queries += b.Queries
	if b.Last.After(a.Last) {
		a.Last = b.Last
	}
}

// Counter counts queries. It is safe for concurrent use.
type Counter struct {
	limit   int64 // bytes
	now     func() time.Time
	since   time.Time
	missed  prometheus.Counter
	mu      sync.Mutex
	used    int64 // bytes
	tenants map[string]*asked
}

// asked is what a tenant's queries asked for.
type asked struct {
	names    map[string]*Asked
	patterns map[string]*pattern
	complete bool // nothing was left out for the limit
}

// pattern is a condition on metric names that names none, such as {__name__=~"node_.*"}.
type pattern struct {
	Asked
	matcher *labels.Matcher
}

// New returns a counter whose entries take limit bytes, about, for all tenants together. A name
// beyond it is not counted; what is counted already stays. reg may be nil.
func New(limit int64, reg prometheus.Registerer, now func() time.Time) *Counter {
	return &Counter{
		limit: limit, now: now, since: now(), tenants: map[string]*asked{},
		missed: promauto.With(reg).NewCounter(prometheus.CounterOpts{
			Name: "promlake_query_uncounted_names_total",
			Help: "Names of metrics in queries that were not counted, because --query.usage-bytes was reached or the name exceeds 512 bytes.",
		}),
	}
}

// Query counts a query of a tenant: once for each metric name that its selectors name, and once for
// each pattern of names. A selector without a condition on the name, or with one that nearly every
// name meets (!=, !~, and =~ that matches the empty name), asks for no name.
func (c *Counter) Query(tenant string, expr parser.Expr) {
	names, patterns := wanted(expr)
	if len(names)+len(patterns) == 0 || c.limit == 0 {
		return
	}
	at := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tenants[tenant]
	if t == nil {
		if !c.room(tenant) {
			return
		}
		t = &asked{names: map[string]*Asked{}, patterns: map[string]*pattern{}, complete: true}
		c.tenants[tenant] = t
	}
	one := Asked{Queries: 1, Last: at}
	for name := range names {
		a := t.names[name]
		if a == nil {
			if !c.room(name) {
				t.complete = false
				continue
			}
			a = &Asked{}
			t.names[name] = a
		}
		a.add(one)
	}
	for text, m := range patterns {
		p := t.patterns[text]
		if p == nil {
			if !c.fits(text, patternBytes(text)) {
				t.complete = false
				continue
			}
			p = &pattern{matcher: m}
			t.patterns[text] = p
		}
		p.add(one)
	}
}

// room takes the memory of an entry, or counts that there is none. mu is held.
func (c *Counter) room(key string) bool { return c.fits(key, 0) }

// fits is room for an entry that takes more bytes beside its name.
func (c *Counter) fits(key string, more int64) bool {
	cost := entryBytes + int64(len(key)) + more
	if len(key) > maxLength || cost > c.limit-c.used {
		c.missed.Inc()
		return false
	}
	c.used += cost
	return true
}

// wanted returns the metric names and the patterns of names in the selectors of an expression.
func wanted(expr parser.Expr) (names map[string]bool, patterns map[string]*labels.Matcher) {
	names, patterns = map[string]bool{}, map[string]*labels.Matcher{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for _, m := range s.LabelMatchers {
			switch {
			case m.Name != model.MetricNameLabel || m.Matches(""):
			case m.Type == labels.MatchEqual:
				names[m.Value] = true
			case m.Type == labels.MatchRegexp && len(m.SetMatches()) > 0:
				for _, name := range m.SetMatches() {
					names[name] = true
				}
			case m.Type == labels.MatchRegexp && m.Value != ".+":
				patterns[m.Value] = m
			}
		}
		return nil
	})
	return names, patterns
}

// Report is what was counted of a tenant.
type Report struct {
	Since       time.Time // when counting began: the start of the process
	Complete    bool      // no name was left out
	Names       int       // with an entry
	Used, Limit int64     // bytes of all tenants

	names    map[string]Asked
	patterns []pattern
}

// Of returns what was counted of a tenant until now.
func (c *Counter) Of(tenant string) Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Report{Since: c.since, Complete: c.limit > 0, Used: c.used, Limit: c.limit, names: map[string]Asked{}}
	if t := c.tenants[tenant]; t != nil {
		out.Complete, out.Names = t.complete, len(t.names)
		for name, a := range t.names {
			out.names[name] = *a
		}
		for _, p := range t.patterns {
			out.patterns = append(out.patterns, *p)
		}
	} else if c.used+entryBytes+maxLength > c.limit {
		out.Complete = false // its queries may have found no room
	}
	return out
}

// Asked returns how many queries asked for a metric, by its name or by a pattern that matches it.
// A query that did both counts twice.
func (r *Report) Asked(name string) Asked {
	out := r.names[name]
	for i := range r.patterns {
		if r.patterns[i].matcher.Matches(name) {
			out.add(r.patterns[i].Asked)
		}
	}
	return out
}
