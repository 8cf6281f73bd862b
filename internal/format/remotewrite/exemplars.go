package remotewrite

import (
	"fmt"
	"math"
	"sync"

	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/series"
)

// AddExemplar adds an exemplar with the label set at hand at t (ms) if it is valid. timed means
// that the sender gave the time. Its series is assigned later.
func (b *Builder) AddExemplar(t int64, v float64, timed bool) {
	if err := b.TimeRange.Check(t); err != nil {
		b.rejectExemplar(err)
		return
	}
	if len(b.labels) > b.Limits.MaxLabelNames {
		b.rejectExemplar(fmt.Errorf("more label names than the limit of %d", b.Limits.MaxLabelNames))
		return
	}
	b.scratch.Reset()
	for _, l := range b.labels {
		if err := b.Limits.checkLabel(l); err != nil {
			b.rejectExemplar(err)
			return
		}
		b.scratch.Add(l.Name, l.Value)
	}
	b.scratch.Sort()
	lset := b.scratch.Labels()
	if name, dup := lset.HasDuplicateLabelNames(); dup {
		b.rejectExemplar(fmt.Errorf("duplicate label name %s", Quote(name)))
		return
	}
	b.left -= CostExemplar + int64(lset.ByteSize())
	// With the default build of the labels package a built set is a string of its own, independent
	// of the message's bytes.
	b.Batch.Exemplars = append(b.Batch.Exemplars, Exemplar{Exemplar: exemplar.Exemplar{Labels: lset, Value: v, Ts: t, HasTs: timed}})
}

// rejectExemplar counts an exemplar that is left out. It is no offence of the request, whose
// samples it does not decide over; Prometheus answers so as well.
func (b *Builder) rejectExemplar(err error) {
	b.left -= costOffence
	b.discard(ReasonExemplar, &Rejection{ReasonExemplar, fmt.Errorf("exemplar: %w", err)}, 1)
}

// Untimed knows the last durable exemplar of each series that has one without a time of its own. A
// sender repeats it with each push or import, at another time. The zero value is ready, and safe
// for concurrent use.
type Untimed struct {
	mu   sync.Mutex
	last map[series.Ref]content
}

// content is what an exemplar says, apart from its time.
type content struct{ labels, value uint64 }

func contentOf(e *Exemplar) content { return content{e.Labels.Hash(), math.Float64bits(e.Value)} }

// Note records the exemplars of a batch that is durable now.
func (u *Untimed) Note(es []Exemplar) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range es {
		if es[i].HasTs {
			continue
		}
		if u.last == nil {
			u.last = map[series.Ref]content{}
		}
		u.last[es[i].Ref] = contentOf(&es[i])
	}
}

// mark marks exemplars that repeat the last one of their series with NoRef, and reports whether
// there are any.
func (u *Untimed) mark(es []Exemplar) (repeated bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range es {
		if last, ok := u.last[es[i].Ref]; ok && !es[i].HasTs && last == contentOf(&es[i]) {
			es[i].Ref, repeated = NoRef, true
		}
	}
	return repeated
}

// size estimates the memory of what is known.
func (u *Untimed) size() int64 {
	const perEntry = 40
	u.mu.Lock()
	defer u.mu.Unlock()
	return perEntry * int64(len(u.last))
}
