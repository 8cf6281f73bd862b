package quota

import (
	"cmp"
	"maps"
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
	all map[string][]Refusal // by tenant, the oldest first
}

// Note records a refusal. If there are too many tenants, it forgets the one whose last refusal is
// the oldest.
func (rs *Refusals) Note(tenant string, r Refusal) {
	if len(r.Error) > maxText {
		r.Error = strings.ToValidUTF8(r.Error[:maxText], "") + "…"
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.all == nil {
		rs.all = map[string][]Refusal{}
	}
	kept, ok := rs.all[tenant]
	if !ok && len(rs.all) >= keptTenants {
		last := func(id string) time.Time { return rs.all[id][len(rs.all[id])-1].Time }
		oldest := slices.MinFunc(slices.Collect(maps.Keys(rs.all)), func(a, b string) int {
			return cmp.Or(last(a).Compare(last(b)), cmp.Compare(a, b))
		})
		delete(rs.all, oldest)
	}
	if len(kept) == keptRefusals {
		kept = slices.Delete(kept, 0, 1)
	}
	rs.all[tenant] = append(kept, r)
}

// Of returns the refusals of a tenant that are kept, the newest first.
func (rs *Refusals) Of(tenant string) []Refusal {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := append([]Refusal{}, rs.all[tenant]...)
	slices.Reverse(out)
	return out
}
