package samples

import (
	"cmp"
	"slices"
	"sync"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/store/replica"
)

const (
	// arenaChunk is the number of elements of a chunk, except the first ones and those for larger
	// requests.
	arenaChunk = 256 << 10
	// smallChunk is the number of elements of the first chunk. Each of the next has four times as
	// many.
	smallChunk = 4 << 10
)

// arena allocates memory of undefined content, for any number of goroutines, and takes it back all
// at once.
type arena[T int64 | float64] struct {
	mu   sync.Mutex
	all  [][]T // chunks
	used int   // of them
	rest []T   // of the last one that is used
}

// take returns n elements.
func (a *arena[T]) take(n int) []T {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > arenaChunk {
		return make([]T, n)
	}
	for n > len(a.rest) {
		if a.used == len(a.all) {
			size := smallChunk << min(2*a.used, 16)
			if size < n || size > arenaChunk {
				size = arenaChunk
			}
			a.all = append(a.all, make([]T, size))
		}
		a.rest = a.all[a.used]
		a.used++
	}
	out := a.rest[:n:n]
	a.rest = a.rest[n:]
	return out
}

// reset takes everything back.
func (a *arena[T]) reset() { a.used, a.rest = 0, nil }

// Memory holds the samples of one batch after the other. What is allocated from it must not outlive
// the batch.
type Memory struct {
	times  arena[int64]
	values arena[float64]

	fragments []fragment // of the series of the batch, in segments: its length is what the batch uses

	joined points     // of the last series that was more than one fragment
	last   []fragment // of the last series, in order; none if they overlapped

	replicas  []replica.Series // of the last series of a match with replicas
	stretches []replica.Stretch
}

// memories keeps memory from one leaf to the next.
var memories = sync.Pool{New: func() any { return new(Memory) }}

// reset takes all memory back, for the next batch.
func (m *Memory) reset() {
	m.times.reset()
	m.values.reset()
	clear(m.fragments) // so that they hold no batch
	m.fragments = m.fragments[:0]
	clear(m.replicas[:cap(m.replicas)])
	m.last = nil
}

// TakeMemory returns memory that no batch uses.
func TakeMemory() *Memory { return memories.Get().(*Memory) }

// Release lets others have the memory.
func (m *Memory) Release() {
	m.reset()
	memories.Put(m)
}

// sequential sorts fragments by their first times and reports whether each ends before the next one
// begins: then all of their samples count.
func sequential(fs []fragment) bool {
	if ordered(fs) { // as is usual: rank follows time
		return true
	}
	slices.SortFunc(fs, func(a, b fragment) int { return cmp.Compare(a.first(), b.first()) })
	return ordered(fs)
}

// ordered reports whether each fragment ends before the next one begins.
func ordered(fs []fragment) bool {
	for i := 1; i < len(fs); i++ {
		if fs[i-1].last() >= fs[i].first() {
			return false
		}
	}
	return true
}

// join is merge for the float samples of a series, valid until the next call, with what it knows of
// them if the kernel's last series was that of the last call.
func (m *Memory) join(s *collected) (p points, facts promsql.Facts) {
	if !slices.ContainsFunc(s.floats, func(f fragment) bool { return !f.batch.clean }) {
		facts |= promsql.NoStale
	}
	if !sequential(s.floats) {
		m.last = nil
		return s.merge(), facts // there are no histograms
	}
	same := slices.EqualFunc(m.last, s.floats, func(f, g fragment) bool { return f.sameTimes(&g) })
	if same {
		facts |= promsql.SameTimes
	}
	m.last = s.floats // nothing changes them any more
	if len(s.floats) == 1 {
		return s.floats[0].points(), facts
	}
	p = points{t: m.joined.t, v: m.joined.v[:0]}
	if !same {
		p.t = p.t[:0]
	}
	for i := range s.floats {
		f := &s.floats[i]
		p.v = append(p.v, f.batch.v[f.off:f.off+f.n]...)
		if !same {
			if f.n == 1 { // as of a scrape
				p.t = append(p.t, f.first())
				continue
			}
			p.t = append(p.t, f.times()...)
		}
	}
	m.joined = p
	return p, facts
}
