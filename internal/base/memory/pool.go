package memory

import (
	"runtime"
	"slices"
	"sync"
)

// Pool keeps a few values between two uses. Whoever asks next gets one, on whatever processor:
// sync.Pool keeps values by processor, so that one that is used every few seconds is often not
// found. As there, a value that nobody has taken while two collections of garbage passed is
// dropped. A Pool is safe for concurrent use.
type Pool[T any] struct {
	most  int
	bytes func(T) int // how large a value is

	mu     sync.Mutex
	unused []unused[T] // ascending by size
	aging  bool        // the next collection calls age
}

// unused is a value, and the number of collections since it was put back.
type unused[T any] struct {
	value T
	size  int
	age   int
}

// lifetime is the number of collections after which an unused value is dropped.
const lifetime = 2

// NewPool returns a pool that keeps at most so many values: the largest ones, by size.
func NewPool[T any](most int, size func(T) int) *Pool[T] { return &Pool[T]{most: most, bytes: size} }

// Get takes the smallest value that has at least the size, and otherwise the largest one that there
// is. It reports false if there is none.
func (p *Pool[T]) Get(size int) (v T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.unused)
	if n == 0 {
		return v, false
	}
	at := slices.IndexFunc(p.unused, func(u unused[T]) bool { return u.size >= size })
	if at < 0 {
		at = n - 1
	}
	v = p.unused[at].value
	p.unused = slices.Delete(p.unused, at, at+1)
	return v, true
}

// Put gives a value to those who ask later. If there are too many, the smallest one is dropped.
func (p *Pool[T]) Put(v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := p.bytes(v)
	at := 0
	for at < len(p.unused) && p.unused[at].size < size {
		at++
	}
	p.unused = slices.Insert(p.unused, at, unused[T]{value: v, size: size})
	if len(p.unused) > p.most {
		p.unused = slices.Delete(p.unused, 0, 1)
	}
	if !p.aging {
		p.await()
	}
}

// unreachable is an object to which nothing refers: the next collection finalizes it.
type unreachable struct{ _ *byte }

// await lets the next collection call age. The caller holds p.mu.
func (p *Pool[T]) await() {
	p.aging = true
	runtime.SetFinalizer(new(unreachable), func(*unreachable) { p.age() })
}

// age drops what nobody has taken for long.
func (p *Pool[T]) age() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.unused {
		p.unused[i].age++
	}
	p.unused = slices.DeleteFunc(p.unused, func(u unused[T]) bool { return u.age >= lifetime })
	if p.aging = len(p.unused) > 0; p.aging {
		p.await()
	}
}

const (
	// leastGarbage is the number of bytes from which Collect considers a collection.
	leastGarbage = 16 << 20
	// garbageShare is the inverse of the share of the heap that garbage must have to be worth one.
	garbageShare = 16
)

// Collect is called after work that has left n bytes of garbage in large pieces, such as the
// columns of a block, and before it. It collects what is garbage if n is a large share of the heap,
// so that the next large pieces use that memory: these do not fit between small objects, and would
// make the process grow although its heap has room.
func Collect(n int64) {
	if n < leastGarbage {
		return
	}
	if uint64(n) >= measured("/memory/classes/heap/objects:bytes")[0]/garbageShare {
		runtime.GC()
	}
}
