package memory

import (
	"runtime"
	"runtime/metrics"
)

const (
	// leastGarbage is the number of bytes from which Collect considers a collection.
	leastGarbage = 16 << 20
	// garbageShare is the inverse of the share of the heap that garbage must have to be worth one.
	garbageShare = 16
)

// Collect is called after work that has left n bytes of garbage in large pieces, such as the columns
// of a block, and before it. It collects what is garbage if n is a large share of the heap, so that
// the next large pieces use that memory: these do not fit between small objects, and would make the
// process grow although its heap has room.
func Collect(n int64) {
	if n < leastGarbage {
		return
	}
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if uint64(n) >= s[0].Value.Uint64()/garbageShare {
		runtime.GC()
	}
}
