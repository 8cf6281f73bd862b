package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// spareBytes is how much a heap of nothing but pointer-free memory grows until it is collected
// again. Memory that is pooled between requests is lost in a collection, so there should not be too
// many.
const spareBytes = 32 << 20

// TuneCollector makes the garbage collector run as often as it is cheap, from now on. By default
// the heap grows to twice what is live, however little of that the collector has to read, and
// however seldom it is needed: large tables of integers would double the memory of a process for
// nothing. With this, the heap grows by what is allocated while collections take half a percent
// of a processor, but by no more than what a collection reads, and a constant, and never to more
// than twice what is live.
func TuneCollector() {
	collected(&cycle{number: cycles.Add(1), target: percent, percent: defaultPercent})
}

// ReserveHeap lets the heap grow to reserve bytes before it is collected, and from then on by a
// part of what is live, in percent. A process whose heap will be that large in the end collects
// less garbage on the way, and does not become larger.
func ReserveHeap(reserve int64, part int) {
	c := &cycle{number: cycles.Add(1), target: func(live, roots, _ uint64, _ float64) int { return percentTo(uint64(reserve), live+roots, part) }}
	c.set(percentTo(uint64(reserve), 0, part))
	collected(c)
}

// SpareCollection lets the heap grow by n bytes, from what it is now, before it is next collected,
// and tunes the collector as TuneCollector does from then on.
func SpareCollection(n int64) {
	c := &cycle{number: cycles.Add(1), target: percent}
	s := measured("/gc/heap/live:bytes", "/gc/scan/stack:bytes", "/gc/scan/globals:bytes", "/memory/classes/heap/objects:bytes")
	c.set(percentTo(s[3]+uint64(n), s[0]+s[1]+s[2], defaultPercent))
	runtime.SetFinalizer(c, collected)
}

const (
	defaultPercent = 100
	// scanPause is the time (seconds) until the next collection for each byte that one reads: two
	// hundred times as long as reading it takes, which is about a nanosecond.
	scanPause = 200e-9
	// rateSeconds is the time over which the rate of allocations is a mean.
	rateSeconds = 60
	// leastHeap is what the runtime takes as live, at the least, when it applies a target.
	leastHeap = 4 << 20
)

// cycles counts the calls of TuneCollector, ReserveHeap and SpareCollection, of which the last one
// counts.
var cycles atomic.Int64

// cycle is an object to which nothing refers: after each collection, its finalizer is called.
type cycle struct {
	number  int64
	target  func(live, roots, scanned uint64, rate float64) int // percent
	percent int                                                 // the target that was set last

	at        time.Time // of the last collection; zero: none was measured
	allocated uint64    // bytes until then
	mean      float64   // see rate
}

func (c *cycle) set(percent int) {
	if percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// collected is the finalizer. It sets the target of the next collection, and itself again.
func collected(c *cycle) {
	if c.number != cycles.Load() {
		return
	}
	s := measured("/gc/heap/live:bytes", "/gc/scan/stack:bytes", "/gc/scan/globals:bytes", "/gc/scan/heap:bytes", "/gc/heap/allocs:bytes")
	c.set(c.target(s[0], s[1]+s[2], s[3], c.rate(time.Now(), s[4])))
	runtime.SetFinalizer(c, collected)
}

// rate returns the bytes that are allocated in a second, about: a mean in which what was a minute ago
// counts for a third, so that a burst, such as a merge, does not make the heap grow. It is infinite
// at the first call, of which nothing is known.
func (c *cycle) rate(now time.Time, allocated uint64) float64 {
	if c.at.IsZero() {
		c.mean = math.Inf(1)
	} else {
		elapsed := max(now.Sub(c.at).Seconds(), 1e-9)
		last := float64(allocated-c.allocated) / elapsed
		if math.IsInf(c.mean, 1) {
			c.mean = last
		}
		c.mean += (last - c.mean) * -math.Expm1(-elapsed/rateSeconds)
	}
	c.at, c.allocated = now, allocated
	return c.mean
}

// measured returns the values of metrics of the runtime.
func measured(names ...string) []uint64 {
	s, out := make([]metrics.Sample, len(names)), make([]uint64, len(names))
	for i, name := range names {
		s[i].Name = name
	}
	metrics.Read(s)
	for i := range s {
		out[i] = s[i].Value.Uint64()
	}
	return out
}

// percent is the collector's target for a heap of live bytes of which scanned may hold pointers,
// roots of stacks and globals, which count as live for the target, and rate bytes that are allocated
// in a second. It is a multiple of five, so that it seldom changes.
func percent(live, roots, scanned uint64, rate float64) int {
	all := live + roots
	if all == 0 {
		return defaultPercent
	}
	read := scanned + roots
	room := min(all, read+spareBytes)
	if needed := spareBytes + rate*scanPause*float64(read); needed < float64(room) {
		room = uint64(needed)
	}
	return int((room*20+all-1)/all) * 5
}

// percentTo is the collector's target with which a heap of live bytes, roots included, grows to
// reserve bytes, but by no less than a part of it.
func percentTo(reserve, live uint64, part int) int {
	live = max(live, leastHeap)
	if reserve <= live {
		return part
	}
	return max(part, int((reserve-live)*20/live)*5)
}
