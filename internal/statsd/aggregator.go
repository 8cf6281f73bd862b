package statsd

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/series"
)

// Aggregator adds events up in bounded memory. It is safe for concurrent use.
type Aggregator struct {
	settings Settings
	now      func() time.Time

	mu       sync.Mutex
	entries  map[string]*entry // by labels
	order    []*entry          // in the order of their first events
	known    map[string]*entry // by texts of senders
	kinds    map[string]*usage // by metric
	series   int               // that a flush writes
	members  int               // of all sets
	flushed  int64             // ms, of the last flush or the beginning
	text     []byte            // reused
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
	touched time.Time
	fresh   bool // no flush has it
}

// timer is a summary or a native histogram.
type timer interface {
	prometheus.Observer
	prometheus.Metric
}

// New returns an aggregator without series.
func New(s Settings, now func() time.Time) *Aggregator {
	a := &Aggregator{
		settings: s, now: now, entries: map[string]*entry{}, known: map[string]*entry{}, kinds: map[string]*usage{},
		flushed: now().UnixMilli(), observer: 1,
	}
	if s.Timers == Summary {
		a.observer = len(objectives) + 2
	}
	return a
}

// Add takes complete lines. drop is called for each event that is left out.
func (a *Aggregator) Add(lines []byte, drop func(reason string, err error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	refused := func(err error) {
		if r, ok := errors.AsType[*Refusal](err); ok { // as are all
			drop(r.Reason, r)
		}
	}
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		parse(line, func(e *event) {
			if err := a.add(e, now); err != nil {
				refused(err)
			}
		}, refused)
	}
}

// add adds an event.
func (a *Aggregator) add(e *event, now time.Time) error {
	x, err := a.find(e)
	if err != nil {
		return err
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
			return nil
		}
		if a.members >= a.settings.MaxSetValues {
			return refuse(ReasonSetValues, "the sets have %d values, which is the limit (statsd.max-set-values)", a.members)
		}
		x.members[id] = struct{}{}
		a.members++
	}
	return nil
}

// find returns the entry of an event.
func (a *Aggregator) find(e *event) (*entry, error) {
	a.text = append(append(append(append(a.text[:0], byte(e.kind)), e.name...), 0), e.tags...)
	if x, ok := a.known[string(a.text)]; ok {
		return x, nil
	}
	lset, err := labelsOf(e)
	if err != nil {
		return nil, refuse(ReasonLine, "metric %s: %w", quote(e.name), err)
	}
	key := keyOf(lset)
	x, ok := a.entries[string(key)]
	if !ok || x.kind != e.kind {
		if x, err = a.create(e.kind, lset, key); err != nil {
			return nil, err
		}
	}
	if len(a.known) >= 2*a.settings.MaxSeries {
		clear(a.known)
	}
	a.known[string(a.text)] = x
	return x, nil
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
	a.entries[string(key)] = x
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

// forget removes an entry from all but order and known.
func (a *Aggregator) forget(x *entry) {
	delete(a.entries, string(x.key))
	a.series -= a.width(x.kind)
	metric := metricOf(x.labels)
	u := a.kinds[metric]
	if u.entries--; u.entries == 0 {
		delete(a.kinds, metric)
	}
}
