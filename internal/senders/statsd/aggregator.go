package statsd

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// Aggregator adds events up in bounded memory. It is safe for concurrent use.
type Aggregator struct {
	settings Settings
	now      func() time.Time

	mu       sync.Mutex
	entries  map[string]*entry // by labels
	order    []*entry          // in the order of their first events
	kinds    map[string]*usage // by metric
	series   int               // that a flush writes
	members  int               // of all sets
	bytes    int64             // of all of these, charged to the settings' Memory
	flushed  int64             // ms, of the last flush or the beginning
	observer int               // series of a timer
}

// usage is which kind a metric has, as long as it has series.
type usage struct {
	kind    kind
	entries int
}

// entry is what the events of one label set have added up to.
type entry struct {
	kind    kind
	labels  []series.Label
	key     []byte
	value   float64 // counter, gauge
	timer   timer
	members map[uint64]struct{}
	bytes   int64 // of the entry without members
	touched time.Time
	fresh   bool // no flush has it
}

// The memory (bytes) of parts of the state, roughly.
const (
	entryBytes   = 512       // an entry and its places in maps, without texts
	summaryBytes = 128 << 10 // a summary with its buffers: 70 KiB when new, 175 KiB after many observations
	nativeBytes  = 8 << 10   // a native histogram with dozens of buckets
	memberBytes  = 50        // a value of a set
	textCopies   = 3         // of the labels of an entry: the sender's, the escaped ones, the key
	flushCopies  = 10        // of the labels of a summary, while a flush writes its series
	processShare = 4         // the inverse of the share that the state may have of the process
)

// timer is a summary or a native histogram.
type timer interface {
	prometheus.Observer
	prometheus.Metric
}

// New returns an aggregator without series.
func New(s Settings, now func() time.Time) *Aggregator {
	a := &Aggregator{settings: s, now: now, flushed: now().UnixMilli(), observer: 1}
	a.reset()
	if s.Timers == Summary {
		a.observer = len(objectives) + 2
	}
	if most := s.Memory.Limit() / processShare; most > 0 {
		a.settings.MaxStateBytes = min(s.MaxStateBytes, most)
	}
	return a
}

// reset forgets all series.
func (a *Aggregator) reset() {
	a.give(a.bytes)
	a.entries, a.kinds = map[string]*entry{}, map[string]*usage{}
	a.order, a.series, a.members = nil, 0, 0
}

// Add takes complete lines. drop is called for each event that is left out, and ignore for each of
// which only a part is.
func (a *Aggregator) Add(lines []byte, drop, ignore func(reason string, err error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	report := func(to func(string, error), err error) {
		if r, ok := errors.AsType[*remotewrite.Rejection](err); ok { // as are all
			to(string(r.Reason), r)
		}
	}
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		parse(line, func(e *event) {
			ignored, err := a.add(e, now)
			report(drop, err)
			if err == nil {
				report(ignore, ignored)
				report(ignore, e.ignored)
			}
		}, func(err error) { report(drop, err) })
	}
}

// add adds an event. ignored says what is ignored of its tags.
func (a *Aggregator) add(e *event, now time.Time) (ignored, err error) {
	lset, ignored, err := labelsOf(e)
	if err != nil {
		return nil, refuse(ReasonLine, "metric %s: %w", quote(e.name), err)
	}
	key := keyOf(lset)
	x, ok := a.entries[remotewrite.View(key)]
	if !ok || x.kind != e.kind {
		if x, err = a.create(e.kind, lset, key); err != nil {
			return nil, err
		}
	}
	x.touched = now
	switch {
	case e.kind == counter, e.relative:
		x.value += e.value
	case e.kind == gauge:
		x.value = e.value
	case e.kind == observer:
		for range e.times {
			x.timer.Observe(e.value)
		}
	case e.kind == set:
		id := xxh3.Hash(e.member)
		if _, ok := x.members[id]; ok {
			break
		}
		if a.members >= a.settings.MaxSetValues {
			return nil, refuse(ReasonSetValues, "the sets have %d values, which is the limit (statsd.max-set-values)", a.members)
		}
		if err := a.take(memberBytes); err != nil {
			return nil, err
		}
		x.members[id] = struct{}{}
		a.members++
	}
	return ignored, nil
}

// take takes memory for more state.
func (a *Aggregator) take(n int64) error {
	if a.bytes+n > a.settings.MaxStateBytes {
		return refuse(ReasonStateBytes, "the state has %d bytes, and the limit is %d (statsd.max-state-bytes, and a quarter of memory-limit at most)", a.bytes, a.settings.MaxStateBytes)
	}
	if err := a.settings.Memory.TryAcquire(n); err != nil {
		return refuse(ReasonStateBytes, "state: %w", err)
	}
	a.bytes += n
	return nil
}

func (a *Aggregator) give(n int64) {
	a.settings.Memory.Release(n)
	a.bytes -= n
}

// create makes an entry, unless there are too many or its metric has another kind.
func (a *Aggregator) create(k kind, lset []series.Label, key []byte) (*entry, error) {
	metric := metricOf(lset)
	u := a.kinds[metric]
	if u != nil && u.kind != k {
		return nil, refuse(ReasonConflict, "metric %s is a %s, and cannot be a %s too", quote([]byte(metric)), u.kind, k)
	}
	x := &entry{kind: k, labels: lset, key: key, fresh: true}
	if n := a.series + a.width(k); n > a.settings.MaxSeries {
		return nil, refuse(ReasonSeries, "there are %d series, and the limit is %d (statsd.max-series)", a.series, a.settings.MaxSeries)
	}
	x.bytes = entryBytes + textCopies*int64(len(key))
	switch {
	case k == observer && a.settings.Timers == Summary:
		x.bytes += summaryBytes + flushCopies*int64(len(key))
	case k == observer:
		x.bytes += nativeBytes
	}
	if err := a.take(x.bytes); err != nil {
		return nil, err
	}
	switch k {
	case observer:
		x.timer = newTimer(a.settings.Timers)
	case set:
		x.members = map[uint64]struct{}{}
	}
	if u == nil {
		u = &usage{kind: k}
		a.kinds[metric] = u
	}
	u.entries++
	a.series += a.width(k)
	a.entries[remotewrite.View(key)] = x // whose key does not change
	a.order = append(a.order, x)
	return x, nil
}

// width is the number of series that an entry is written as.
func (a *Aggregator) width(k kind) int {
	if k == observer {
		return a.observer
	}
	return 1
}

// empty removes the members of a set.
func (a *Aggregator) empty(x *entry) {
	a.members -= len(x.members)
	a.give(memberBytes * int64(len(x.members)))
	x.members = map[uint64]struct{}{}
}
