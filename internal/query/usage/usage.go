// Package usage counts which metrics and labels the queries of each tenant ask for, and what the
// queries took, and keeps the counts in the store (schemas/usage.md).
package usage

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Settings of a Counter.
type Settings struct {
	// Bytes is the memory of the entries that are not in the store yet, about, for all tenants
	// together, and that of one tenant's entries in the store. 0 counts nothing.
	Bytes int64
	// Interval is the time between two saves. 0 keeps the counts in memory.
	Interval time.Duration
}

// Counter counts queries. It is safe for concurrent use.
type Counter struct {
	settings Settings
	store    objstore.Store
	log      *slog.Logger
	now      func() time.Time
	missed   prometheus.Counter
	saves    *prometheus.CounterVec

	saving sync.Mutex   // held while counts are saved
	tried  atomic.Int64 // ms: the last save, or the start

	mu     sync.Mutex
	used   int64 // bytes
	from   int64 // ms: what was counted before is in the store, or in frozen
	lost   int64 // ms: the newest query of a tenant that found no room
	fresh  map[string]*batch
	frozen map[string]*batch          // to be saved, unchanged, until that has succeeded
	recent *memory.LRU[string, known] // by tenant
}

// countable limits the patterns that are counted: a report compiles them, one at a time.
var countable = expression.Limits{MaxBytes: 8 << 10, MaxDepth: 1}

// batch is what a tenant's queries asked for in a span of time.
type batch struct {
	tally
	spent spending
	id    string // a ULID, by which the store knows whether it has the batch
	from  int64  // ms: begin of the span
	lost  int64  // ms: the newest query of which something was not counted; 0: there is none
	used  int64  // bytes
}

// New returns a counter that keeps its counts in store. A process that only asks for them needs an
// interval of 0. reg may be nil.
func New(s Settings, store objstore.Store, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) *Counter {
	c := &Counter{
		settings: s, store: store, log: logger, now: now, from: now().UnixMilli(), fresh: map[string]*batch{}, frozen: map[string]*batch{}, recent: memory.NewLRU[string, known](maxKnown),
		missed: promauto.With(reg).NewCounter(prometheus.CounterOpts{
			Name: "promlake_query_uncounted_names_total",
			Help: "Names of metrics and labels in queries that were not counted, because --query.usage-bytes was reached, the name exceeds 4096 bytes, or the pattern is too large.",
		}),
		saves: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "promlake_query_usage_saves_total",
			Help: "Attempts to add a tenant's counts of queries to those in the store, by result: ok or failed.",
		}, []string{"result"}),
	}
	c.tried.Store(c.from)
	return c
}

// LabelValues counts a request of a tenant for the values of a label.
func (c *Counter) LabelValues(tenant, label string) {
	var w Wants
	w.add(labelNames, label)
	c.Query(tenant, &w)
}

// Query counts a query of a tenant, once for each of the things that it asks for.
func (c *Counter) Query(tenant string, w *Wants) {
	if c.settings.Bytes == 0 || len(w[metrics])+len(w[patterns])+len(w[labelNames]) == 0 {
		return
	}
	one := Asked{1, c.now().UnixMilli()}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.batch(tenant, one.Last)
	if b == nil {
		return
	}
	for k := range kinds {
		for _, name := range w[k] {
			if _, known := b.tally[k][name]; !known && (k == patterns && countable.CheckPatterns(name) != nil || !c.room(b, name)) {
				b.lost = one.Last
				c.missed.Inc()
				continue
			}
			b.tally.add(k, name, one)
		}
	}
}

// Spend accounts for what a query of a tenant took, for its source and its token; counted is false
// for a part of a query that another process counts. Several tenants share what their query took.
func (c *Counter) Spend(r *request.Running, counted bool) {
	ns := r.Took.Nanoseconds.Load()
	if c.settings.Bytes == 0 || ns == 0 {
		return
	}
	tenants := strings.Split(r.Tenant, tenant.Separator)
	n := int64(len(tenants))
	one := Spent{Title: r.Source.Title, Microseconds: ns / 1000 / n, Bytes: r.Took.Bytes.Load() / n, Requests: r.Took.Requests.Load() / n}
	if counted {
		one.Queries = 1
	}
	at := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range tenants {
		if b := c.batch(id, at.UnixMilli()); b != nil {
			c.spend(b, at.UTC().Format(time.DateOnly), r, one)
		}
	}
}

// spend adds what a query of a day took to a batch. mu is held.
func (c *Counter) spend(b *batch, day string, r *request.Running, one Spent) {
	spend := func(kind, name string, one Spent) {
		key := kind + "/" + name
		if _, known := b.spent[day][key]; !known && !c.room(b, day+key+one.Title) {
			key, one.Title = kind+"/", ""
		}
		b.spent.add(day, key, one)
	}
	spend(r.Source.Kind, r.Source.Name, one)
	if one.Title = ""; r.Token != "" {
		spend(Token, r.Token, one)
	}
}

// batch returns the batch that counts of a tenant enter at a time (ms); nil if there is no room for
// one. mu is held.
func (c *Counter) batch(tenant string, at int64) *batch {
	if b := c.fresh[tenant]; b != nil {
		return b
	}
	b := &batch{spent: spending{}, id: ulid.MustNew(ulid.Now(), rand.Reader).String(), from: c.from, lost: c.lost}
	if !c.room(b, tenant) {
		c.lost = at
		c.missed.Inc()
		return nil
	}
	c.fresh[tenant] = b
	return b
}

// room takes the memory of an entry of a batch, and reports whether there is any. mu is held.
func (c *Counter) room(b *batch, name string) bool {
	n := entrySize(name)
	if len(name) > maxLength || n > c.settings.Bytes-c.used {
		return false
	}
	b.used, c.used = b.used+n, c.used+n
	return true
}
