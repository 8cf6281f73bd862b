package process

import (
	"cmp"
	"context"
	"os"
	"runtime/debug"

	"github.com/promlake/promlake/internal/base/memory"
)

// memoryLimit is that of a process.
type memoryLimit struct {
	bytes int64 // 0: none
	tune  bool  // Go's soft limit follows from it
}

// budget is the limit of a process that stays. GOMEMLIMIT, where it is set, stands.
func (s Settings) budget() memoryLimit {
	return memoryLimit{bytes: cmp.Or(s.MemoryLimit, memory.DefaultLimit()), tune: os.Getenv("GOMEMLIMIT") == ""}
}

// tuneGC sets the target of the garbage collector. GOGC, where it is set, stands.
func tuneGC(s Settings) {
	switch {
	case s.GCPercent > 0 && s.HeapReserve > 0:
		memory.ReserveHeap(s.HeapReserve, s.GCPercent)
	case s.GCPercent > 0:
		debug.SetGCPercent(s.GCPercent)
	case os.Getenv("GOGC") == "":
		memory.TuneCollector()
	}
}

// firstRequestsBytes is how much the heap grows after the start before it is collected: what the
// start has left would be collected during one of the first queries, which would take twice as
// long.
const firstRequestsBytes = 8 << 20

// watch is the stage that measures the process for as long as others run. It is built first, so
// that it ends last.
type watch struct {
	Idle
	*Work
}

// Close implements Stage.
func (w watch) Close() error { return w.End(context.Background()) }

// writePath is where a write stage takes remote_write.
const writePath = "/api/v1/write"
