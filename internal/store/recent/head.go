package recent

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/series"
)

// Retention is how long samples are kept: rules mostly read five minutes, some of them ten.
const Retention = 12 * time.Minute

const (
	// minReads is the number of reads within a minute that begin a head. A dashboard or two and a few
	// rules do not reach it.
	minReads = 100
	// idle is the time after the last read at which a head ends.
	idle = 10 * time.Minute
	// cooldown is how long a head that took too much memory stays off: a wave of new series passes.
	cooldown = time.Hour
	// sweepEvery is the interval at which all series are searched for samples that are too old.
	sweepEvery = time.Minute
	// late is the age of a sample from which its segment is kept elsewhere: the head may drop the
	// sample before the segment is merged.
	late = 2 * time.Minute
	// maxObjects is the number of objects that a head tracks. Others count as objects of another
	// process.
	maxObjects = 8 << 10
)

// Head holds the last samples of a tenant. It is safe for concurrent use.
type Head struct {
	heads *heads
	bytes int64 // of memory, guarded by heads.mu

	mu        sync.RWMutex
	on        bool
	offUntil  time.Time // because it took too much memory; zero: it may begin
	nodes     nodes
	last      *generation // series of the latest table; nil: there are no samples
	before    *generation // series of the table before; nil: none has samples
	floor     int64       // ms: samples at or before it may be missing
	swept     time.Time
	objects   map[string]int64 // by name: the last time (ms) of samples that the head lacks
	order     []string         // of the objects, the oldest first
	deletions ulid.ULID        // the newest tombstone of the tenant
	log       log
	epoch     uint64    // changes when the log is emptied
	restarted time.Time // when it last restarted
	rows      rows      // of the segment that is added

	asking sync.Mutex
	asked  int       // reads since
	since  time.Time // the start of this minute of reads
	latest time.Time // of a read
}

// Begin begins the head now, instead of after many reads.
func (h *Head) Begin() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin()
}

// begin begins a head that is off. The caller holds h.mu.
func (h *Head) begin() {
	now := h.heads.now()
	if h.on || now.Before(h.offUntil) {
		return
	}
	if !h.offUntil.IsZero() {
		h.offUntil = time.Time{}
		h.heads.pause(-1)
	}
	h.asking.Lock()
	h.latest = now
	h.asking.Unlock()
	h.on, h.floor, h.objects = true, math.MinInt64, map[string]int64{}
	h.clearLog()
}

// end drops everything and turns the head off. The caller holds h.mu.
func (h *Head) end() {
	h.on, h.nodes, h.last, h.before, h.objects, h.order = false, nodes{}, nil, nil, nil, nil
	h.clearLog()
	h.heads.set(h, 0)
}

// clearLog empties the log, so that no Part from before is valid. The caller holds h.mu.
func (h *Head) clearLog() {
	h.epoch++
	h.log.reset()
}

// noteRead counts a read, and reports whether there are enough of them to begin the head.
func (h *Head) noteRead() bool {
	now := h.heads.now()
	h.asking.Lock()
	defer h.asking.Unlock()
	h.latest = now
	if now.Sub(h.since) > time.Minute {
		h.since, h.asked = now, 0
	}
	h.asked++
	return h.asked >= minReads
}

// idle reports whether nobody has read for long.
func (h *Head) idle() bool {
	h.asking.Lock()
	defer h.asking.Unlock()
	return h.heads.now().Sub(h.latest) > idle
}

// Stored adds a durable segment, by its name. Segments come in the order of their ranks. kept
// reports that Part will return the samples of the segment for some minutes, so that nobody else
// needs to keep them.
func (h *Head) Stored(name string, s *Segment) (kept bool) {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on {
		return false
	}
	if h.idle() {
		h.end()
		return false
	}
	if s == nil || s.ST != nil {
		h.restart()
		return false
	}
	h.drop()
	if !h.useTable(s.Labels.View()) {
		h.restart() // the head lacks this segment and all before it
		return false
	}
	h.rows.sort(s.Rows, h.last.chains.len())
	h.rows.single = s.Single()
	all := s
	if s = h.unseen(all); s == nil {
		h.restart()
		return false
	}
	h.rows.single = s.Single()
	h.add(s)
	h.noteObject(name, math.MinInt64)
	if len(s.V) == 0 {
		return false
	}
	now := h.heads.now()
	from := int64(math.MaxInt64)
	if s == all && s.Floats() && now.Sub(h.restarted) > Retention { // a sender that made it restart may do so often
		from = now.Add(-late).UnixMilli()
	}
	kept = h.log.add(name, now, s, &h.rows, from)
	if !h.heads.set(h, h.nodes.bytes()+h.last.bytes()+h.before.bytes()+h.log.bytes) {
		h.end()
		h.offUntil = now.Add(cooldown)
		h.heads.pause(1)
		return false
	}
	return kept
}

// On reports whether the head takes what is stored.
func (h *Head) On() bool {
	if h == nil {
		return false
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.on
}

// Keeps reports whether the head has all samples of the segments that were stored within some
// minutes, and when the first of these was stored.
func (h *Head) Keeps() (since time.Time, ok bool) {
	if h == nil {
		return since, false
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	all := h.log.records
	if !h.on || len(all) == 0 || slices.ContainsFunc(all, func(r record) bool { return !r.kept }) {
		return since, false
	}
	return all[0].stored, true
}

// Restart drops the samples of a head that is on, and begins it again.
func (h *Head) Restart() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on {
		h.restart()
	}
}

// restart drops all samples and objects. The index of the series stays, because a sender can cause
// restarts often. The caller holds h.mu.
func (h *Head) restart() {
	h.restarted = h.heads.now()
	last := h.last
	h.end()
	h.begin()
	if last != nil {
		last.chains.clear()
		clear(last.others)
		h.last = last
	}
}

// chain returns the samples of a series; it first moves those of the table before to the latest
// one. The caller holds h.mu.
func (h *Head) chain(ref series.Ref) *chain {
	x := h.last.chains.at(ref)
	if x.line == 0 && h.before != nil {
		h.last.adopt(ref, h.before)
	}
	return x
}

// ascending reports whether each sample of a segment is later than all that the head has had of its
// series. The caller holds h.mu.
func (h *Head) ascending(s *Segment) bool {
	var line, at uint32 // of the series before, mostly of the same target
	newest := int64(math.MinInt64)
	for _, row := range h.rows.sorted {
		x := h.chain(s.Rows[row])
		if x.line != line || x.at != at {
			line, at, newest = x.line, x.at, h.nodes.last(x)
		}
		last := newest
		for from, end := h.rows.samples(s, row); from < end; from++ {
			t := s.Time(from)
			if t <= last {
				return false
			}
			last = t
		}
	}
	return true
}

// add adds the samples of a segment. The caller holds h.mu.
func (h *Head) add(s *Segment) {
	for _, row := range h.rows.sorted {
		x := h.last.chains.at(s.Rows[row])
		for from, end := h.rows.samples(s, row); from < end; from++ {
			h.nodes.append(x, s.Time(from), s.V[from], h.floor)
		}
	}
	for i := range s.Hists {
		h.last.others[s.Rows[s.Hists[i].Row]] = struct{}{}
	}
}

// drop raises the floor. Once a minute it also frees the samples below the floor of series that get
// no more samples; others free theirs when they grow. The caller holds h.mu.
func (h *Head) drop() {
	now := h.heads.now()
	h.floor = max(h.floor, now.Add(-Retention).UnixMilli())
	h.log.drop(now.Add(-Retention))
	if now.Sub(h.swept) < sweepEvery {
		return
	}
	h.swept = now
	for _, g := range []*generation{h.before, h.last} {
		if g == nil {
			continue
		}
		for _, x := range g.chains.all() {
			h.nodes.forget(x, h.floor)
		}
	}
	if b := h.before; b != nil && (b.left == 0 || b.upto <= h.floor) {
		h.before = nil
	}
}

// useTable makes the table of a view the latest one, and adds its new series. It reports false if
// that would be the third table with samples within the retention. The caller holds h.mu.
func (h *Head) useTable(view *series.View) bool {
	if h.last != nil && !h.last.view.SameTable(view) {
		if h.before != nil && h.before.left > 0 {
			return false
		}
		h.before = h.last
		h.before.byID, h.before.upto = map[uint64]series.Ref{}, math.MinInt64
		for ref, x := range h.before.chains.all() {
			if x.line != 0 {
				h.before.byID[h.before.view.ID(ref)] = ref
				h.before.upto = max(h.before.upto, h.nodes.last(x))
				h.before.left++
			}
		}
		h.last = nil
		h.clearLog()
	}
	if h.last == nil {
		h.last = &generation{view: view, selections: &selections{all: memory.NewLRU[string, *selection](h.heads.limit / selectionShare)}, others: map[series.Ref]struct{}{}}
	}
	h.last.grow(view)
	return true
}

// noteObject records that the head has all samples of an object after upto (ms). The caller holds
// h.mu.
func (h *Head) noteObject(name string, upto int64) {
	if _, ok := h.objects[name]; !ok {
		h.order = append(h.order, name)
	}
	h.objects[name] = upto
	if len(h.order) > maxObjects {
		delete(h.objects, h.order[0])
		h.order = h.order[1:]
	}
}

// Source is an object that a block was merged from, and the time (ms) of its last sample.
type Source struct {
	Name string
	MaxT int64
}

// Merged records that a block, by its name, has exactly the samples of its sources.
func (h *Head) Merged(name string, sources []Source) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on {
		return
	}
	upto := int64(math.MinInt64)
	for _, s := range sources {
		if known, ok := h.objects[s.Name]; ok {
			upto = max(upto, known)
		} else {
			upto = max(upto, s.MaxT)
		}
	}
	h.noteObject(name, upto)
}

// Reading is a read of a head. It sees the same samples until it is closed. Close it soon: segments
// that are stored meanwhile wait for it, and so do their senders.
type Reading struct{ h *Head }

// Read begins a read of samples from mint (ms) on. It reports false if the head does not have them:
// it is off, or they are too old. deletions is the newest tombstone of the tenant; where it is not
// the one that the head knows, the head restarts.
func (h *Head) Read(mint int64, deletions ulid.ULID) (Reading, bool) {
	if h == nil || mint <= h.heads.now().Add(-Retention).UnixMilli() {
		return Reading{}, false
	}
	wanted := h.noteRead()
	h.mu.RLock()
	on, same := h.on, h.deletions == deletions
	if on && same && mint > h.floor {
		return Reading{h}, true
	}
	h.mu.RUnlock()
	if on && same || !on && !wanted {
		return Reading{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deletions != deletions {
		if h.deletions = deletions; h.on && len(h.order) > 0 {
			h.end()
		}
	}
	h.begin()
	return Reading{}, false
}

// Newest begins a read of all samples that the head has: those from a time (ms) on. It reports
// false if it has none, or if deletions is not the newest tombstone that it knows. It does not
// count as a read that begins the head.
func (h *Head) Newest(deletions ulid.ULID) (r Reading, from int64, ok bool) {
	if h == nil {
		return Reading{}, 0, false
	}
	h.mu.RLock()
	if h.on && h.deletions == deletions {
		return Reading{h}, max(h.floor, h.heads.now().Add(-Retention).UnixMilli()) + 1, true
	}
	h.mu.RUnlock()
	return Reading{}, 0, false
}

// Close ends the read.
func (r Reading) Close() { r.h.mu.RUnlock() }

// Has reports whether the head has all samples of an object, by its name, from mint (ms) on. maxT
// (ms) is the time of its last sample.
func (r Reading) Has(name string, maxT, mint int64) bool { return r.Upto(name, maxT) < mint }

// Upto returns the last time (ms) at which an object, by its name, may have samples that the head
// lacks. maxT (ms) is the time of its last sample.
func (r Reading) Upto(name string, maxT int64) int64 {
	if upto, ok := r.h.objects[name]; ok {
		return upto
	}
	return maxT
}
