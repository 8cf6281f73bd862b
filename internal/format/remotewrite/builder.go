package remotewrite

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Rules are what decoded samples are checked against.
type Rules struct {
	Limits     *Limits
	TimeRange  TimeRange
	MaxWindows int  // 2h windows that the samples of a request may lie in; 0: any number
	ToQueue    bool // the batch becomes messages, so metadata that messages carry already is left out
	Offences   int  // how many offences the batch lists

	// Labels are added to every series before it is relabeled, instead of its labels of the same
	// name. They are sorted by name, one of each name.
	Labels []series.Label
	// Relabel changes or drops label sets before they are checked.
	Relabel []*relabel.Config
	// Admit refuses valid label sets, which are sorted and new to the generation, with a
	// *Rejection; nil: none. Any other error ends the message, whose fault it is not. It is called
	// with the lock of the generation's table and must not keep the set.
	Admit func([]series.Label) error
	// Discard counts refused samples, exemplars or metadata; nil: nobody does. The error is nil for
	// what breaks no rule.
	Discard func(r Reason, err error, samples int)
}

// Builder adds what a decoder reads to a batch. It checks it against the rules and takes its memory
// from the room. A Builder is reused; one goroutine at a time uses it.
type Builder struct {
	Rules
	Room
	Batch *Batch

	durable *Descriptions // metadata that is left out
	place   int           // of what is read
	labels  []series.Label
	scratch labels.ScratchBuilder
}

// Begin makes the builder ready for a message whose label sets go into the generation g.
func (b *Builder) Begin(g *Generation, rules Rules, room Room) {
	b.Rules, b.Room, b.Batch, b.durable, b.place = rules, room, batches.Get().(*Batch), &g.Stored, 0
	b.Batch.Generation, b.Batch.MinT, b.Batch.MaxT = g, math.MaxInt64, math.MinInt64
	if rules.ToQueue {
		b.durable = &g.Queued
	}
}

// End returns the batch, or releases it if decoding ended with an error. The builder keeps no
// reference to the message, the batch and the generation.
func (b *Builder) End(err error) (*Batch, error) {
	out := b.Batch
	out.Bytes = b.used()
	clear(b.labels[:cap(b.labels)])
	b.Rules, b.Room, b.Batch, b.durable = Rules{}, Room{}, nil, nil
	if err != nil {
		out.Release()
		return nil, err
	}
	return out, nil
}

// addFloat adds a sample if its timestamps are allowed. Its series is assigned later.
func (b *Builder) addFloat(t int64, v float64, st int64) {
	err := b.TimeRange.Check(t)
	if err == nil && st != 0 {
		err = b.TimeRange.CheckStart(st)
	}
	if err != nil {
		b.reject(err, 1)
		return
	}
	b.left -= CostFloat
	out := b.Batch
	out.Floats = append(out.Floats, Float{T: t, V: v})
	if st != 0 && out.Starts == nil {
		out.Starts = make([]int64, len(out.Floats)-1, cap(out.Floats))
	}
	if out.Starts != nil {
		out.Starts = append(out.Starts, st)
	}
}

// reject notes that n samples of a series were refused.
func (b *Builder) reject(err error, n int) {
	b.left -= costOffence
	b.offend(err, b.place)
	if r, ok := errors.AsType[*Rejection](err); ok {
		b.discard(r.Reason, r, n)
	}
}

// offend notes that a series was refused, in whole or in part.
func (b *Builder) offend(err error, place int) {
	b.Batch.Rejected++
	if b.Batch.Err == nil {
		b.Batch.Err = err
	}
	if len(b.Batch.Offences) < b.Offences {
		b.Batch.Offences = append(b.Batch.Offences, Offence{place, err})
	}
}

func (b *Builder) discard(r Reason, err error, samples int) {
	if b.Discard != nil {
		b.Discard(r, err, samples)
	}
}

// AddHistogram decodes a Histogram message, whose field numbers 1.0 and 2.0 share, and adds it if
// it is valid. An error means that the message is malformed or that there is no room.
func (b *Builder) AddHistogram(msg []byte) error {
	b.left -= CostHistogram + costBucket*int64(len(msg))
	if err := b.Reserve(0); err != nil {
		return err
	}
	var m writev2.Histogram
	if err := m.Unmarshal(msg); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	if err := cmp.Or(b.TimeRange.Check(m.Timestamp), b.TimeRange.CheckStart(m.StartTimestamp)); err != nil {
		b.reject(err, 1)
		return nil
	}
	h, err := convertHistogram(&m)
	if err != nil {
		b.reject(&Rejection{ReasonHistogram, fmt.Errorf("histogram at %d ms: %w", m.Timestamp, err)}, 1)
		return nil
	}
	b.Batch.Hists = append(b.Batch.Hists, Hist{Hist: h})
	return nil
}

// convertHistogram validates a histogram as Prometheus does, and reduces resolutions that this
// version of Prometheus does not know.
func convertHistogram(m *writev2.Histogram) (segment.Hist, error) {
	h := segment.Hist{ST: m.StartTimestamp, T: m.Timestamp}
	var reduce func(int32) error
	var validate func() error
	if m.IsFloatHistogram() {
		h.FH = m.ToFloatHistogram()
		reduce, validate = h.FH.ReduceResolution, h.FH.Validate
	} else {
		h.H = m.ToIntHistogram()
		reduce, validate = h.H.ReduceResolution, h.H.Validate
	}
	if histogram.IsExponentialSchemaReserved(m.Schema) && m.Schema > histogram.ExponentialSchemaMax {
		if err := reduce(histogram.ExponentialSchemaMax); err != nil {
			return h, err
		}
	}
	return h, validate()
}

// ClearLabels begins a label set, to which AppendLabel adds.
func (b *Builder) ClearLabels() { b.labels = b.labels[:0] }

// AppendLabel adds to the label set at hand. It drops labels beyond one more than the limit, which
// are enough to refuse the set. The texts may lie in the message.
func (b *Builder) AppendLabel(l series.Label) {
	if len(b.labels) <= b.Limits.MaxLabelNames {
		b.labels = append(b.labels, l)
	}
}

// admitError is an error of Admit.
type admitError struct{ error }

func (e *admitError) Unwrap() error { return e.error }

// Intern adds the label set at hand to the generation's table, with k as a key of it, or returns a
// *Rejection. It returns NoRef if the rules drop the set. The table has no such key; canonical says
// that this is the only key for which Intern is called so with these labels. The caller holds the
// table's lock.
func (b *Builder) Intern(k series.Key, canonical bool) (series.Ref, error) {
	t := b.Batch.Generation.Table
	own := canonical && len(b.Labels)+len(b.Relabel) == 0
	ref, err := b.intern(func(lset []series.Label) (series.Ref, error) {
		if own {
			return t.Add(k, lset)
		}
		return t.Intern(lset)
	})
	switch {
	case err != nil || own:
	case ref == NoRef:
		if b.Batch.Generation.dropped == nil {
			b.Batch.Generation.dropped = map[series.Key]struct{}{}
		}
		b.Batch.Generation.dropped[k] = struct{}{}
	default:
		t.AliasNew(k, ref)
	}
	return ref, err
}

// intern checks the label set at hand, and adds it with add.
func (b *Builder) intern(add func([]series.Label) (series.Ref, error)) (series.Ref, error) {
	if len(b.Labels) > 0 {
		b.labels = Extend(b.labels, b.Labels)
	}
	if len(b.Relabel) > 0 {
		keep, err := b.relabel()
		if err != nil {
			return 0, err
		}
		if !keep {
			return NoRef, nil
		}
	}
	lset, err := b.Limits.CheckLabels(b.labels)
	if err != nil {
		return 0, err
	}
	if b.Admit != nil {
		if err := b.Admit(lset); err != nil {
			return 0, &admitError{err}
		}
	}
	ref, err := add(lset)
	if err != nil {
		return 0, fmt.Errorf("intern series: %w", err)
	}
	return ref, nil
}

// AddMetadata adds a metric family's metadata, cut to its limits, unless it is known to be durable. A
// family without a valid name is left out and counted; no message is refused for it. The texts may
// lie in the message.
func (b *Builder) AddMetadata(m segment.Metadata) {
	if b.durable.has(m) { // and therefore fits
		return
	}
	if err := fitMetadata(&m); err != nil {
		b.left -= costOffence
		b.discard(ReasonMetadata, err, 1)
		return
	}
	if b.durable.has(m) { // without what was cut
		return
	}
	b.left -= costMetadata + int64(len(m.Metric)+len(m.Type)+len(m.Help)+len(m.Unit))
	m.Metric, m.Type, m.Help, m.Unit = strings.Clone(m.Metric), strings.Clone(m.Type), strings.Clone(m.Help), strings.Clone(m.Unit)
	b.Batch.Metadata = append(b.Batch.Metadata, m)
}

// relabel applies the relabeling rules to the label set at hand, and reports whether they keep it.
// The set must have the form of one, so that the rules see all of it; what its names and values
// are is checked afterwards.
func (b *Builder) relabel() (keep bool, err error) {
	if err := b.Limits.sort(b.labels); err != nil {
		return false, err
	}
	b.scratch.Reset()
	for _, l := range b.labels {
		b.scratch.Add(l.Name, l.Value)
	}
	lb := labels.NewBuilder(b.scratch.Labels())
	if !relabel.ProcessBuilder(lb, b.Relabel...) {
		return false, nil
	}
	b.ClearLabels()
	// Rules may add labels; one more than the limit is enough to refuse the set.
	lb.Labels().Range(func(l labels.Label) { b.AppendLabel(series.Label{Name: l.Name, Value: l.Value}) })
	return true, nil
}
