package instrument

import (
	"sync"
	"time"

	"github.com/promlake/promlake/internal/format/key"
)

// Writes remembers when this process last wrote what queries of a tenant read: a segment, or the
// manifest. A query that begins later must not use a listing from before. It is safe for concurrent
// use; the nil Writes remembers nothing.
type Writes struct {
	mu    sync.Mutex
	last  map[string]time.Time // by tenant
	floor time.Time            // counts for every tenant
}

// maxWrites is the number of tenants that are remembered one by one. Beyond it they are forgotten,
// and all tenants count as just written.
const maxWrites = 4096

// Last returns the time of the tenant's last write, or a later one; zero: there was none. It is on
// the clock of time.Now.
func (w *Writes) Last(tenant string) time.Time {
	if w == nil {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.last[tenant]; t.After(w.floor) {
		return t
	}
	return w.floor
}

// note remembers that a put has ended. A put that failed may have had its effect.
func (w *Writes) note(k string) {
	tenant, ok := key.QueriedTenant(k)
	if w == nil || !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if len(w.last) >= maxWrites {
		clear(w.last)
		w.floor = now
	}
	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	w.last[tenant] = now
}
