package recent

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
)

// A head keeps the float samples of a tenant that the process has stored within the last minutes,
// by series. Rules and panels that read a few minutes find them at once, without a search in each
// of the many segments and in the parts that these have been merged to.
//
// A head has all samples of some live objects in a range of time, or it is not used. It begins when
// recent samples are read often. From then on it gets each segment that the process stores, and it
// records each block that the process merges from them. So it has every sample of these objects
// after the floor; older ones are dropped. Objects that it did not get, of other processes or from
// before it began, end at some time. A read that begins after that time and after the floor finds
// all of its samples in the head.
//
// Segments wait in a head until they are merged. Its log records, for each segment in order of
// arrival, which series have samples in it. Part uses the log to extract exactly the samples of a
// set of segments.
//
// Series that get their samples together share their times. Each has its newest sample, and the
// differences that lead from there to older ones.
//
// A head has one sample of a series and time. If a segment has samples that are not later than all
// before of their series, or start timestamps, the head restarts and drops what it had. Series with
// native histograms are read elsewhere.

// heads are the heads of tenants within a bound on memory. They are safe for concurrent use. The
// nil heads has none.
type heads struct {
	limit int64 // bytes of all
	now   func() time.Time

	mu     sync.Mutex
	all    map[string]*Head
	bytes  int64
	paused int // heads that took too much memory

	held     prometheus.Gauge
	exceeded prometheus.Gauge
}

// newHeads returns heads that take limit bytes together, about.
func newHeads(limit int64, reg prometheus.Registerer, now func() time.Time) *heads {
	return &heads{
		limit: limit, now: now, all: map[string]*Head{},
		held:     telemetry.Metrics{Registerer: reg, Prefix: "promlake_"}.Gauge("head_bytes", "Memory for the samples of the last minutes, by series, of tenants whose recent samples are read often."),
		exceeded: telemetry.Metrics{Registerer: reg, Prefix: "promlake_"}.Gauge("head_limit_reached", "1 if the samples of the last minutes took more than --query.head-bytes within the last hour, so that those of a tenant are not kept."),
	}
}

// of returns the head of a tenant. If there is none, it creates one or returns nil.
func (h *heads) of(tenant string, create bool) *Head {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.all[tenant]
	if x == nil && create {
		x = &Head{heads: h}
		h.all[tenant] = x
	}
	return x
}

// set records the memory of a head, and reports whether all are within the limit.
func (h *heads) set(x *Head, bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += bytes - x.bytes
	x.bytes = bytes
	h.held.Set(float64(h.bytes))
	return h.bytes <= h.limit
}

// pause counts n more heads that are off because they took too much memory.
func (h *heads) pause(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused += n
	h.exceeded.Set(float64(min(1, h.paused)))
}

// keptSamples and keptSeries bound the memory of a room that is used again: one of a large query
// would stay while nobody needs so much.
const (
	keptSamples = 64 << 10
	keptSeries  = 4 << 10
)

// Room is memory for what Select returns. The zero value is ready.
type Room struct {
	t      []int64
	v      []float64
	series []Series
}

// Reset takes all memory back. What Select has returned must not be used any more: it has no
// labels, and its samples are no numbers, at the beginning of time unless their times are those of
// the head, so that whoever does it nevertheless is found out.
func (r *Room) Reset() {
	if cap(r.t) > keptSamples || cap(r.v) > keptSamples || cap(r.series) > keptSeries {
		*r = Room{}
		return
	}
	for i := range r.t {
		r.t[i] = math.MinInt64
	}
	for i := range r.v {
		r.v[i] = math.NaN()
	}
	clear(r.series)
	r.t, r.v, r.series = r.t[:0], r.v[:0], r.series[:0]
}
