package quota

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Refusal is one refusal as the audit shows it.
type Refusal struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Samples int       `json:"samples"` // that were refused, or exemplars or metadata; 0: not known
	Error   string    `json:"error"`   // as the sender got it, shortened
}

// The audit keeps the last keptRefusals of each of the keptTenants that were refused something
// last, and at most maxText bytes of each error.
const (
	keptRefusals = 100
	keptTenants  = 200
	maxText      = 512
)

// Refusals is the audit of a process. It is safe for concurrent use.
type Refusals struct {
	mu  sync.Mutex
	all map[string]*ring
}

// ring holds the last refusals of a tenant.
type ring struct {
	kept []Refusal
	next int // where the next goes once kept is full
	last time.Time
}

// Note records a refusal.
func (rs *Refusals) Note(tenant string, r Refusal) {
	if len(r.Error) > maxText {
		r.Error = strings.ToValidUTF8(r.Error[:maxText], "") + "…"
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	t, ok := rs.all[tenant]
	if !ok {
		t = rs.admit(tenant)
	}
	t.last = r.Time
	if len(t.kept) < keptRefusals {
		t.kept = append(t.kept, r)
		return
	}
	t.kept[t.next] = r
	t.next = (t.next + 1) % keptRefusals
}

// admit adds a tenant, in place of the one whose last refusal is the oldest if there are too many.
// The caller holds rs.mu.
func (rs *Refusals) admit(tenant string) *ring {
	if len(rs.all) >= keptTenants {
		oldest := ""
		for id, t := range rs.all {
			if o := rs.all[oldest]; o == nil || t.last.Before(o.last) || t.last.Equal(o.last) && id < oldest {
				oldest = id
			}
		}
		delete(rs.all, oldest)
	}
	if rs.all == nil {
		rs.all = map[string]*ring{}
	}
	t := &ring{}
	rs.all[tenant] = t
	return t
}

// Of returns the refusals of a tenant that are kept, the newest first.
func (rs *Refusals) Of(tenant string) []Refusal {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := []Refusal{}
	if t := rs.all[tenant]; t != nil {
		out = append(append(out, t.kept[t.next:]...), t.kept[:t.next]...)
	}
	slices.Reverse(out)
	return out
}
