package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// spareBytes is how much a heap of nothing but pointer-free memory grows until it is collected
// again. Memory that is pooled between requests is lost in a collection, so there should not be too
// many.
const spareBytes = 32 << 20

// TuneCollector makes the garbage collector run as often as it is cheap, from now on. By default
// the heap grows to twice what is live, however little of that the collector has to read: large
// tables of integers would double the memory of a process for nothing. With this, the heap grows by
// what a collection reads, and by a constant, but never to more than twice what is live.
func TuneCollector() {
	collected(&cycle{percent: defaultPercent})
}

const defaultPercent = 100

// cycle is an object to which nothing refers: after each collection, its finalizer is called.
type cycle struct {
	percent int // the target that was set last
}

// collected is the finalizer. It sets the target of the next collection, and itself again.
func collected(c *cycle) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(s)
	live, roots, scanned := s[0].Value.Uint64(), s[1].Value.Uint64()+s[2].Value.Uint64(), s[3].Value.Uint64()
	if p := percent(live, roots, scanned); p != c.percent {
		c.percent = p
		debug.SetGCPercent(p)
	}
	runtime.SetFinalizer(c, collected)
}

// percent is the collector's target for a heap of live bytes of which scanned may hold pointers,
// and roots of stacks and globals, which count as live for the target. It is a multiple of five, so
// that it seldom changes.
func percent(live, roots, scanned uint64) int {
	all := live + roots
	if all == 0 {
		return defaultPercent
	}
	room := min(all, scanned+roots+spareBytes)
	return int((room*20+all-1)/all) * 5
}
