package recent

import (
	"container/list"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/segment"
)

// stale is the age at which a segment makes room for a newer one. A compactor of this process takes
// a segment of a busy tenant within two or three minutes, one of a quiet tenant perhaps never.
const stale = 5 * time.Minute

// Segments holds segments by the key of their object within a bound on memory. When it is full, it
// takes no other: those that it has are merged first, and a merge gains only if all of its segments
// are here. It is safe for concurrent use. The nil Segments holds nothing.
type Segments struct {
	limit int64 // bytes
	now   func() time.Time
	kept  prometheus.Gauge

	mu    sync.Mutex
	all   map[string]*list.Element // of held, by key
	order *list.List               // of held: the oldest first
	bytes int64

	footers footers
	heads   *heads // nil: none
	merged  bool   // of KeepHeads
}

// held is a segment of a stored object.
type held struct {
	key     string
	size    int64 // of the object
	since   time.Time
	segment *Segment // nil: its samples are in a head
	lent    bool     // somebody else has had segment
	waiting Waiting  // if segment is nil
}

// Waiting is a segment whose samples the head of its tenant has, and nobody else in memory.
type Waiting struct {
	Labels   *Labels
	Samples  int64
	Metadata []segment.Metadata
}

// cost is the memory of an entry.
func (h *held) cost() int64 {
	own := int64(len(h.key)) + 224
	if h.segment != nil {
		return own + h.segment.bytes()
	}
	for i := range h.waiting.Metadata {
		own += descriptionBytes(&h.waiting.Metadata[i])
	}
	return own
}

// New returns a cache of limit bytes.
func New(limit int64, reg prometheus.Registerer, now func() time.Time) *Segments {
	return &Segments{
		limit: limit, now: now, all: map[string]*list.Element{}, order: list.New(), footers: footers{limit: limit / footerShare, all: memory.NewLRU[string, footer](limit / footerShare)},
		kept: telemetry.Metrics{Registerer: reg, Prefix: "promlake_"}.Gauge("recent_segment_bytes", "Memory of stored segments that are kept until this process merges them."),
	}
}

// KeepHeads lets s keep the last samples by series too, within a limit of bytes beyond its own, of
// tenants whose recent samples are read often. merged means that segments are merged within some
// minutes, so that s leaves them to the heads until then.
func (s *Segments) KeepHeads(limit int64, merged bool, reg prometheus.Registerer) {
	s.heads, s.merged = newHeads(limit, reg, s.now), merged
}

// Keeps reports whether the head of a tenant has the last segments until they are merged, and since
// when at most.
func (s *Segments) Keeps(tenant string) (since time.Time, ok bool) {
	if s == nil || !s.merged {
		return since, false
	}
	return s.heads.of(tenant, false).Keeps()
}

// Head returns the last samples of a tenant by series; nil: there are none.
func (s *Segments) Head(tenant string) *Head {
	if s == nil {
		return nil
	}
	return s.heads.of(tenant, true)
}

// Stored adds segments of a tenant that are durable to its head, in the order of their ranks. A nil
// content is not known. What the head keeps until it is merged is not kept here as well.
func (s *Segments) Stored(tenant, key string, content *Segment) {
	if s == nil {
		return
	}
	if h := s.heads.of(tenant, false); content == nil {
		h.Stored(key, nil)
	} else if h.Stored(key, content) && s.merged {
		s.leave(key)
	}
}

// leave leaves the samples of a segment to a head. If nobody else has had them, their memory is
// used again.
func (s *Segments) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[key]; e != nil {
		h := e.Value.(*held)
		before := h.cost()
		h.waiting = Waiting{h.segment.Labels, h.segment.Samples(), h.segment.Metadata}
		if !h.lent {
			// Nobody uses the memory of the segment: the next one may.
			spareColumns.Put(columns{h.segment.Rows[:0], h.segment.V[:0], h.segment.near[:0]})
			h.segment.Rows, h.segment.V, h.segment.near = nil, nil, nil
		}
		h.segment = nil
		s.add(h.cost() - before)
	}
}

// Waiting returns a segment, an object of size bytes, whose samples are in a head.
func (s *Segments) Waiting(key string, size int64) (Waiting, bool) {
	if s == nil {
		return Waiting{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[key]; e != nil {
		if h := e.Value.(*held); h.size == size && h.segment == nil {
			return h.waiting, true
		}
	}
	return Waiting{}, false
}

// sampleBytes is the memory of a float sample of a scrape, about.
const sampleBytes = 14

// Of returns the content of a batch, whose label sets are in l, for Put. It shares no memory with
// the batch. It returns nil if there is no room, or if the encoded batch cannot be read, which the
// merge that reads the object reports.
func (s *Segments) Of(b *segment.Batch, l *Labels) *Segment {
	if s == nil || !s.room(sampleBytes*int64(len(b.V))) {
		return nil
	}
	content, err := compact(b, l)
	if err != nil {
		return nil
	}
	return content
}

// room reports whether n more bytes fit, after removal of what is stale.
func (s *Segments) room(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.makeRoom(n)
}

// makeRoom is room for a caller that holds s.mu.
func (s *Segments) makeRoom(n int64) bool {
	for before := s.now().Add(-stale); s.bytes+n > s.limit; {
		oldest := s.order.Front()
		if oldest == nil || !oldest.Value.(*held).since.Before(before) {
			return false
		}
		s.remove(oldest)
	}
	return true
}

// Put keeps the content of an object of size bytes that is durable, unless it is nil or there is no
// room.
func (s *Segments) Put(key string, size int64, content *Segment) {
	if s == nil || content == nil {
		return
	}
	h := &held{key: key, size: size, since: s.now(), segment: content}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] != nil || !s.makeRoom(h.cost()) {
		return
	}
	s.all[key] = s.order.PushBack(h)
	s.add(h.cost())
}

// Get returns the content of an object of size bytes, or nil.
func (s *Segments) Get(key string, size int64) *Segment {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[key]; e != nil && e.Value.(*held).size == size {
		h := e.Value.(*held)
		h.lent = true
		return h.segment
	}
	return nil
}

// Remove forgets an object.
func (s *Segments) Remove(key string) {
	if s == nil {
		return
	}
	s.footers.take(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[key]; e != nil {
		s.remove(e)
	}
}

// remove forgets an entry. The caller holds s.mu.
func (s *Segments) remove(e *list.Element) {
	h := s.order.Remove(e).(*held)
	delete(s.all, h.key)
	s.add(-h.cost())
}

// add counts bytes. The caller holds s.mu.
func (s *Segments) add(n int64) {
	s.bytes += n
	s.kept.Set(float64(s.bytes))
}
