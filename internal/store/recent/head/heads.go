package head

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Heads are the heads of tenants within a bound on memory. They are safe for concurrent use. The
// nil Heads has none.
type Heads struct {
	limit int64 // bytes of all
	now   func() time.Time

	mu     sync.Mutex
	all    map[string]*Head
	sizes  map[*Head]int64
	bytes  int64
	paused int // heads that took too much memory

	held     prometheus.Gauge
	exceeded prometheus.Gauge
}

// New returns heads that take limit bytes together, about.
func New(limit int64, reg prometheus.Registerer, now func() time.Time) *Heads {
	return &Heads{
		limit: limit, now: now, all: map[string]*Head{}, sizes: map[*Head]int64{},
		held: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
			Namespace: "promlake", Subsystem: "head", Name: "bytes",
			Help: "Memory for the samples of the last minutes, by series, of tenants whose recent samples are read often.",
		}),
		exceeded: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
			Namespace: "promlake", Subsystem: "head", Name: "limit_reached",
			Help: "1 if the samples of the last minutes took more than --query.head-bytes within the last hour, so that those of a tenant are not kept.",
		}),
	}
}

// Known returns the head of a tenant, nil if nobody has asked for it yet.
func (h *Heads) Known(tenant string) *Head {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[tenant]
}

// Of returns the head of a tenant.
func (h *Heads) Of(tenant string) *Head {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.all[tenant]
	if x == nil {
		x = &Head{heads: h}
		h.all[tenant] = x
	}
	return x
}

// set records the memory of a head, and reports whether all are within the limit.
func (h *Heads) set(x *Head, bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += bytes - h.sizes[x]
	if h.sizes[x] = bytes; bytes == 0 {
		delete(h.sizes, x)
	}
	h.held.Set(float64(h.bytes))
	return h.bytes <= h.limit
}

// pause counts n more heads that are off because they took too much memory.
func (h *Heads) pause(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused += n
	h.exceeded.Set(float64(min(1, h.paused)))
}
