package remotewrite

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/zeebo/xxh3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Collector adds what another protocol carries to a batch. Like the decoder, it spares a known
// series all work but a hash and a look-up: a sender's own text for a series is its key. Samples
// and exemplars are added first; then Series says whose they are.
type Collector struct {
	d     *decoder
	begin Mark // of the last series
	end   Mark
	last  series.Key
	memo  *Memo  // of the last series; nil: it has the key last
	text  []byte // of the last call of Of
}

// Collect calls read, which adds samples to the collector, and returns the batch of them. Samples
// and series that break a rule are left out, and the batch has the first offence; samples in too
// many windows are refused as a whole with a *Rejection. Other errors are read's own, a
// *DenseError, or what the room's grow returned; nothing is kept then.
func Collect(g *Generation, rules Rules, room Room, read func(*Collector) error) (*Batch, error) {
	return decode(V1, g, rules, room, func(d *decoder) error { return read(&Collector{d: d}) })
}

// Key makes the key of a series from a text of the sender. Different protocols, and requests whose
// parameters change the series, must not use equal texts for different series. The labels that the
// rules add are no part of the text.
func (c *Collector) Key(text []byte) series.Key { return xxh3.Hash128Seed(text, c.d.seed) }

// AppendKey appends a part of a key after its length, so that no two sequences of parts give equal
// texts.
func AppendKey[T string | []byte](dst []byte, part T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(part))), part...)
}

// Place says which part of the message is read, from 1 on, for offences that follow.
func (c *Collector) Place(n int) { c.d.place = n }

// Knows reports whether the series with the key is known.
func (c *Collector) Knows(k series.Key) bool {
	_, ok := c.d.table.Lookup(k)
	return ok
}

// Expect makes room for n float samples that follow.
func (c *Collector) Expect(n int) {
	if cap(c.d.Batch.Floats)-len(c.d.Batch.Floats) >= n {
		return
	}
	if n < manyFloats || len(c.d.Batch.Floats) > 0 {
		c.d.Batch.Floats = slices.Grow(c.d.Batch.Floats, n)
		return
	}
	if f, ok := floats.Get(n); ok && cap(f) >= n {
		c.d.Batch.Floats = f
	} else {
		c.d.Batch.Floats = make([]Float, 0, max(n, min(n+n/8, keepSamples))) // the next batch may be a little larger
	}
	c.d.Batch.lent = true
}

// Float adds a sample at t (ms).
func (c *Collector) Float(t int64, v float64) { c.d.addFloat(t, v, 0) }

// Started adds a sample at t (ms) of what began at start (ms; 0: unknown).
func (c *Collector) Started(start, t int64, v float64) { c.d.addFloat(t, v, start) }

// HistogramRoom takes the memory of a native histogram for which the sender wrote size bytes, and
// of reading it.
func (c *Collector) HistogramRoom(size int) error {
	return c.Take(CostHistogram + 2*costBucket*int64(size))
}

// Take takes memory (bytes) of the request. An error means that there is none.
func (c *Collector) Take(n int64) error {
	c.d.left -= n
	return c.d.Reserve(0)
}

// Histogram adds a native histogram, for which HistogramRoom was called. It returns a *Rejection if
// the histogram breaks a rule, and records none.
func (c *Collector) Histogram(h segment.Hist) error {
	if err := cmp.Or(c.d.TimeRange.Check(h.T), c.d.TimeRange.CheckStart(h.ST)); err != nil {
		return err
	}
	var err error
	if h.H != nil {
		err = h.H.Validate()
	} else {
		err = h.FH.Validate()
	}
	if err != nil {
		return &Rejection{ReasonHistogram, fmt.Errorf("histogram at %d ms: %w", h.T, err)}
	}
	c.d.Batch.Hists = append(c.d.Batch.Hists, Hist{Hist: h})
	return nil
}

// Exemplar adds an exemplar, whose Ts is set also if HasTs, the sender gave the time, is not. Its
// texts are copied.
func (c *Collector) Exemplar(e exemplar.Exemplar) {
	c.d.ClearLabels()
	e.Labels.Range(func(l labels.Label) { c.d.AppendLabel(series.Label{Name: l.Name, Value: l.Value}) })
	c.d.AddExemplar(e.Ts, e.Value, e.HasTs)
}

// RejectExemplar counts an exemplar that breaks a rule.
func (c *Collector) RejectExemplar(err error) error {
	c.d.rejectExemplar(err)
	return c.d.Reserve(0)
}

// Metadata adds the metadata of a metric family. Its texts are copied.
func (c *Collector) Metadata(m segment.Metadata) error {
	c.d.AddMetadata(m)
	return c.d.Reserve(0)
}

// Describes reports whether metadata of a metric family is durable, so that it need not be added.
func (c *Collector) Describes(m segment.Metadata) bool { return c.d.durable.has(m) }

// Series assigns what was added since the last call to the series with the key. It reports whether
// the series is known; if not, Learn or Refuse must follow. An error means that there is no room.
func (c *Collector) Series(k series.Key) (known bool, err error) {
	if err := c.d.Reserve(0); err != nil {
		return false, err
	}
	c.begin, c.end, c.last, c.memo = c.end, c.d.Batch.Mark(), k, nil
	return c.begin == c.end || c.d.known(k, c.begin), nil
}

// Text begins the text of a key, in the memory of the last one that Of got.
func (c *Collector) Text(space KeySpace) []byte { return append(c.text[:0], space) }

// Of is Series for a text of the sender, with what must follow: the labels of a series that is not
// known are learned, or it is refused if they break a rule. rejection makes a *Rejection of their
// error. An error of Of means that there is no room.
func (c *Collector) Of(text []byte, labels func() ([]series.Label, error), rejection func(error) error) error {
	c.text = text
	known, err := c.Series(c.Key(text))
	if known || err != nil {
		return err
	}
	lset, err := labels()
	if err != nil {
		return c.Refuse(rejection(err))
	}
	return c.Learn(lset)
}

// CollectLines is Collect for a text with a sample in each line that is not empty. add adds it; its
// error means that there is no room.
func CollectLines(g *Generation, rules Rules, room Room, body []byte, add func(c *Collector, line []byte) error) (*Batch, error) {
	return Collect(g, rules, room, func(c *Collector) error {
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			if err := add(c, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// Learn gives the labels of the last series, in any order. Their texts are copied.
func (c *Collector) Learn(lset []series.Label) error {
	d := c.d
	size := 0
	for _, l := range lset {
		size += 3*binary.MaxVarintLen32 + 3 + len(l.Name) + len(l.Value)
	}
	text := make([]byte, 0, size)
	for _, l := range lset {
		text = appendLabelV1(text, l)
	}
	d.left -= costSeries + int64(cap(text))
	var own *given
	if c.memo != nil {
		own = &given{memo: c.memo}
	}
	d.misses = append(d.misses, miss{key: c.last, given: own, labels: text, from: c.begin, to: c.end, place: int32(d.place)})
	return d.Reserve(0)
}

// LearnLabels is Learn for labels that do not change until Collect returns.
func (c *Collector) LearnLabels(ls labels.Labels) error {
	c.d.left -= costSeries + costGiven
	c.d.misses = append(c.d.misses, miss{key: c.last, given: &given{c.memo, ls}, from: c.begin, to: c.end, place: int32(c.d.place)})
	return c.d.Reserve(0)
}

// Refuse removes the samples of the last series, which is not known and breaks a rule.
func (c *Collector) Refuse(err error) error {
	n := c.begin.samples(c.end)
	c.d.Batch.cut(c.begin)
	c.end = c.begin
	return c.Reject(err, n)
}

// Reject records that what would have been samples breaks a rule.
func (c *Collector) Reject(err error, samples int) error {
	c.d.reject(err, samples)
	return c.d.Reserve(0)
}

// Skip counts samples that are left out although they break no rule.
func (c *Collector) Skip(r Reason, samples int) { c.d.discard(r, nil, samples) }

// appendLabelV1 appends a field of a prometheus.TimeSeries: labels = 1, with name = 1, value = 2.
func appendLabelV1(dst []byte, l series.Label) []byte {
	size := 2 + protowire.SizeBytes(len(l.Name)) + protowire.SizeBytes(len(l.Value))
	dst = binary.AppendUvarint(append(dst, 1<<3|wireBytes), uint64(size))
	return AppendKey(append(AppendKey(append(dst, 1<<3|wireBytes), l.Name), 2<<3|wireBytes), l.Value)
}
