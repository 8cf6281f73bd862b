package remotewrite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/prompb"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// walkV1 reads a prometheus.WriteRequest (remote-write 1.0): timeseries = 1, metadata = 3.
func (d *decoder) walkV1(msg []byte) error {
	for len(msg) > 0 {
		// Nearly all of a message are series of less than 16 kB.
		if head, n := shortField(msg, 1); head > 0 {
			if d.near && d.guessedV1(msg[head:head+n]) {
				// As most series of most messages are.
			} else if err := d.seriesV1(msg[head : head+n]); err != nil {
				return fmt.Errorf("timeseries: %w", err)
			}
			msg = msg[head+n:]
			if err := d.Reserve(0); err != nil {
				return err
			}
			continue
		}
		m := fields{rest: msg}
		if !m.next() {
			return m.err
		}
		msg = m.rest
		if (m.num == 1 || m.num == 3) && m.wire != wireBytes {
			return errWire("WriteRequest", m.field)
		}
		switch m.num {
		case 1:
			if err := d.seriesV1(m.data); err != nil {
				return fmt.Errorf("timeseries: %w", err)
			}
		case 3:
			var md prompb.MetricMetadata
			if err := md.Unmarshal(m.data); err != nil {
				return fmt.Errorf("metadata: %w", err)
			}
			kind := unknownKind
			if name, ok := prompb.MetricMetadata_MetricType_name[int32(md.Type)]; ok {
				kind = strings.ToLower(name)
			}
			d.AddMetadata(segment.Metadata{Metric: md.MetricFamilyName, Type: kind, Help: md.Help, Unit: md.Unit})
		}
		if err := d.Reserve(0); err != nil {
			return err
		}
	}
	return nil
}

// seriesV1 reads a prometheus.TimeSeries: labels = 1, samples = 2, exemplars = 3, histograms = 4.
func (d *decoder) seriesV1(b []byte) error {
	from := d.Batch.Mark()
	all := b
	lo, hi := -1, -1 // the label fields, as long as they are adjacent
	near := d.nearV1(b)
	if near > 0 {
		lo, hi, b = 0, near, b[near:]
	}
	// Most series begin with their labels, each of less than 128 bytes.
	for len(b) > 1 && b[0] == 1<<3|wireBytes && b[1] < 0x80 && len(b)-2 >= int(b[1]) {
		b = b[2+int(b[1]):]
		lo, hi = 0, len(all)-len(b)
	}
	b, err := d.samples(b)
	if err != nil {
		return err
	}
	joined := false
	for m := (fields{rest: b}); len(m.rest) > 0; {
		at := len(all) - len(m.rest)
		if !m.next() {
			return m.err
		}
		if m.num >= 1 && m.num <= 4 && m.wire != wireBytes {
			return errWire("TimeSeries", m.field)
		}
		switch m.num {
		case 1:
			end := len(all) - len(m.rest)
			switch {
			case lo < 0:
				lo, hi = at, end
			case hi == at && !joined:
				hi = end
			default:
				if !joined {
					d.joined, joined = append(d.joined[:0], all[lo:hi]...), true
				}
				d.joined = append(d.joined, all[at:end]...)
			}
		case 2:
			err = d.sample(m.data, V1)
		case 3:
			err = d.exemplar(m.data, V1)
		case 4:
			err = d.AddHistogram(m.data)
		}
		if err != nil {
			return err
		}
		if err := d.Reserve(0); err != nil {
			return err
		}
	}
	if near > 0 {
		d.Batch.Assign(from, d.Batch.Mark(), d.guess)
		d.guess++
		return nil
	}
	lset := all[max(lo, 0):max(hi, 0)]
	if joined {
		lset = append([]byte(nil), d.joined...)
	}
	k := xxh3.Hash128Seed(lset, d.seed)
	if !d.known(k, from) {
		d.left -= costSeries
		d.misses = append(d.misses, miss{key: k, labels: lset, raw: true, from: from, to: d.Batch.Mark()})
	}
	return nil
}

// guessedV1 adds the sample of a TimeSeries that is the guessed one and has nothing else but one
// sample, as samples reads them, whose timestamp is allowed. It reports whether it did.
func (d *decoder) guessedV1(b []byte) bool {
	k, n := d.table.Near(d.guess)
	at := n + 2 // of the sample
	if n == 0 || len(b) < 8 || len(b)-at < 2 || b[n] != 2<<3|wireBytes || int(b[n+1]) != len(b)-at {
		return false
	}
	v := 0.0
	if b[at] == 1<<3|wireFixed64 && len(b)-at > 9 {
		v = double(binary.LittleEndian.Uint64(b[at+1:]))
		at += 9
	}
	t, ok := lastVarint(b, len(b)-at-1)
	if b[at] != 2<<3|wireVarint || !ok || d.TimeRange.Check(int64(t)) != nil || xxh3.Hash128Seed(b[:n], d.seed) != k {
		return false
	}
	d.left -= CostFloat
	d.Batch.Floats = append(d.Batch.Floats, Float{Ref: d.guess, T: int64(t), V: v})
	d.Batch.See(int64(t))
	d.guess++
	return true
}

// nearV1 returns the length of the label fields of a TimeSeries that is the guessed one and has
// nothing else but samples, otherwise 0. It saves the walk through the labels. While guesses are
// wrong, it is not tried: each wrong one may cost a hash.
func (d *decoder) nearV1(b []byte) int {
	if !d.near {
		return 0
	}
	k, n := d.table.Near(d.guess)
	if n == 0 || n > len(b) {
		return 0
	}
	for rest := b[n:]; len(rest) > 0; {
		head, size := shortField(rest, 2)
		if head == 0 {
			return 0
		}
		rest = rest[head+size:]
	}
	if xxh3.Hash128Seed(b[:n], d.seed) != k {
		return 0
	}
	return n
}

// labelsV1 reads the label fields of a TimeSeries into d.labels.
func (d *decoder) labelsV1(b []byte) error {
	d.ClearLabels()
	m := fields{rest: b}
	for m.next() {
		if err := d.labelV1(m.data); err != nil {
			return err
		}
	}
	return m.err
}

// canonicalV1 reports whether label fields are the only ones that senders can write of their label
// set: sorted by name, each name once, none without a value, and no length in more bytes than it
// takes.
func canonicalV1(b []byte) bool {
	var last []byte
	for len(b) > 0 {
		head, n := minimalField(b, 1)
		if head == 0 {
			return false
		}
		label := b[head : head+n]
		b = b[head+n:]
		head, n = minimalField(label, 1)
		if head == 0 {
			return false
		}
		name, value := label[head:head+n], label[head+n:]
		head, n = minimalField(value, 2)
		if head == 0 || n == 0 || head+n != len(value) || bytes.Compare(last, name) >= 0 {
			return false
		}
		last = name
	}
	return true
}

// minimalField is shortField for a field whose length is written in as few bytes as it takes.
func minimalField(b []byte, num byte) (head, n int) {
	head, n = shortField(b, num)
	if head == 3 && n < 0x80 {
		return 0, 0
	}
	return head, n
}

// labelV1 reads a prometheus.Label into d.labels: name = 1, value = 2.
func (d *decoder) labelV1(b []byte) error {
	var l series.Label
	m := fields{rest: b}
	for m.next() {
		switch {
		case m.num == 1 && m.wire == wireBytes:
			l.Name = View(m.data)
		case m.num == 2 && m.wire == wireBytes:
			l.Value = View(m.data)
		case m.num <= 2:
			return errWire("Label", m.field)
		}
	}
	if m.err == nil {
		d.AppendLabel(l)
	}
	return m.err
}
