package request

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
)

// Kinds of sources. Each query has one source.
const (
	Dashboard = "dashboard"  // named by its UID
	AlertRule = "alert_rule" // one of Grafana, named by its UID
	RuleGroup = "rule_group" // one of Promlake, named by its namespace or file, and its name
	Client    = "client"     // named by its program
)

// Kinds are all kinds of sources.
var Kinds = []string{Dashboard, AlertRule, RuleGroup, Client}

// Source is what a query is accounted to.
type Source struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Title string `json:"title,omitempty"` // for people
}

// SourceHeader is the header by which a process that divides a query tells others its source, as
// JSON.
const SourceHeader = "X-Promlake-Source"

// Origin describes the HTTP request behind a query: its sender and its text.
type Origin struct {
	Path   string // of the API
	Remote string // address
	Token  string // the first digits of its SHA-256, or the ARN of a principal; "": none was needed
	Source Source
	Text   string // of the query, or the selectors

	Allowance auth.Allowance // of the token

	Part    atomic.Bool                // of a query that another request counts
	Took    Took                       // by its queries
	Refused atomic.Pointer[LimitError] // the cost limit that refused a query of it; nil: none did
}

// Took is what queries took so far. It is safe for concurrent use.
type Took struct {
	Nanoseconds atomic.Int64 // that they ran
	Bytes       atomic.Int64 // of objects that they read, cached or not
	Requests    atomic.Int64 // to the store, for objects
}

// Add adds what another query took.
func (t *Took) Add(o *Took) {
	t.Nanoseconds.Add(o.Nanoseconds.Load())
	t.Bytes.Add(o.Bytes.Load())
	t.Requests.Add(o.Requests.Load())
}

// Running is a query that runs, or waits for its turn. Its public fields do not change.
type Running struct {
	*Origin

	Tenant     string
	Text       string
	Start, End int64 // ms
	Step       int64 // ms; 0: it has one time, or none
	Took       Took

	number uint64
	since  time.Time
	turn   atomic.Int64 // when its turn began, in nanoseconds after since; 0: it waits
	work   *memory.Work
	cancel context.CancelCauseFunc
}

// ID identifies the query among those of its process.
func (r *Running) ID() string { return strconv.FormatUint(r.number, 16) }

// Age returns the time since the query arrived, and whether it waits for its turn.
func (r *Running) Age() (age time.Duration, waits bool) {
	return time.Since(r.since), r.turn.Load() == 0
}

// Memory returns the bytes that the query holds, as far as the limit of the process counts them.
func (r *Running) Memory() int64 { return r.work.Bytes() }

// Begin notes that the query's turn has come.
func (r *Running) Begin() { r.turn.Store(max(1, int64(time.Since(r.since)))) }

// Leave notes that the query's turn has ended: its time counts until then. The first call counts.
func (r *Running) Leave() {
	if began := r.turn.Load(); began > 0 {
		r.Took.Nanoseconds.CompareAndSwap(0, max(1, int64(time.Since(r.since))-began))
	}
}

// Queries are the queries of a process. They are safe for concurrent use.
type Queries struct {
	mu   sync.Mutex
	last uint64
	all  map[uint64]*Running
}

// Add lists a query until the returned function is called; cancel ends it.
func (q *Queries) Add(ctx context.Context, r *Running, cancel context.CancelCauseFunc) (remove func()) {
	r.since, r.work, r.cancel = time.Now(), memory.Of(ctx), cancel
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[uint64]*Running{}
	}
	q.last++
	r.number = q.last
	q.all[r.number] = r
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.all, r.number)
	}
}

// reads reports whether the query reads from a tenant. It may read from several.
func (r *Running) reads(id string) bool {
	return slices.Contains(strings.Split(r.Tenant, tenant.Separator), id)
}

// Of returns the queries that read from a tenant, the oldest first.
func (q *Queries) Of(tenant string) (out []*Running) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.all {
		if r.reads(tenant) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *Running) int { return cmp.Compare(a.number, b.number) })
	return out
}

// End ends the query with an ID that reads from a tenant. It returns false if there is none.
func (q *Queries) End(tenant, id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, err := strconv.ParseUint(id, 16, 64)
	r := q.all[n]
	if err != nil || r == nil || !r.reads(tenant) {
		return false
	}
	r.cancel(&EndedError{id})
	return true
}

// EndedError reports that somebody has ended the query.
type EndedError struct{ ID string }

// Error implements error.
func (e *EndedError) Error() string {
	return fmt.Sprintf("a request for /api/v1/status/active_queries has ended query %s", e.ID)
}
