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
		f, rest, err := next(msg)
		if err != nil {
			return err
		}
		msg = rest
		switch f.num {
		case 1:
			if f.wire != wireBytes {
				return errWire("WriteRequest", f)
			}
			if err := d.seriesV1(f.data); err != nil {
				return fmt.Errorf("timeseries: %w", err)
			}
		case 3:
			if f.wire != wireBytes {
				return errWire("WriteRequest", f)
			}
			var m prompb.MetricMetadata
			if err := m.Unmarshal(f.data); err != nil {
				return fmt.Errorf("metadata: %w", err)
			}
			kind := unknownKind
			if name, ok := prompb.MetricMetadata_MetricType_name[int32(m.Type)]; ok {
				kind = strings.ToLower(name)
			}
			d.AddMetadata(segment.Metadata{Metric: m.MetricFamilyName, Type: kind, Help: m.Help, Unit: m.Unit})
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
	for len(b) > 0 {
		at := len(all) - len(b)
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		b = rest
		if f.num >= 1 && f.num <= 4 && f.wire != wireBytes {
			return errWire("TimeSeries", f)
		}
		switch f.num {
		case 1:
			end := len(all) - len(b)
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
			err = d.sample(f.data, V1)
		case 3:
			err = d.exemplarV1(f.data)
		case 4:
			err = d.AddHistogram(f.data)
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

// exemplarV1 reads a prometheus.Exemplar: labels = 1, value = 2, timestamp = 3.
func (d *decoder) exemplarV1(b []byte) error {
	var v, t uint64
	d.ClearLabels()
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		b = rest
		switch {
		case f.num == 1 && f.wire == wireBytes:
			l, err := labelV1(f.data)
			if err != nil {
				return err
			}
			d.AppendLabel(l)
		case f.num == 2 && f.wire == wireFixed64:
			v = f.val
		case f.num == 3 && f.wire == wireVarint:
			t = f.val
		case f.num <= 3:
			return errWire("Exemplar", f)
		}
	}
	d.AddExemplar(int64(t), double(v), true)
	return nil
}

// labelsV1 reads the label fields of a TimeSeries into d.labels.
func (d *decoder) labelsV1(b []byte) error {
	d.ClearLabels()
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		b = rest
		l, err := labelV1(f.data)
		if err != nil {
			return err
		}
		d.AppendLabel(l)
	}
	return nil
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

// labelV1 reads a prometheus.Label: name = 1, value = 2.
func labelV1(b []byte) (l series.Label, err error) {
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return l, err
		}
		b = rest
		switch {
		case f.num == 1 && f.wire == wireBytes:
			l.Name = View(f.data)
		case f.num == 2 && f.wire == wireBytes:
			l.Value = View(f.data)
		case f.num <= 2:
			return l, errWire("Label", f)
		}
	}
	return l, nil
}
