package otlp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/value"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// point is the data point that is being read.
type point struct {
	attributes span
	start      uint64 // ns; 0: unknown
	time       uint64 // ns
	stale      bool   // it has no recorded value: the series ends

	key     series.Key // of several members
	shared  []series.Label
	built   bool // shared is known
	refused bool // the point counts as rejected
}

// flagNoValue is the bit of DataPointFlags that says that a point has no recorded value.
const flagNoValue = 1

// common reads a field that all kinds of data points have: start_time_unix_nano = 2, time_unix_nano
// = 3, and flags, whose number differs.
func (p *point) common(r *reader, flags protowire.Number) {
	switch r.num {
	case 2:
		p.start = r.fixed64()
	case 3:
		p.time = r.fixed64()
	case flags:
		p.stale = r.varint()&flagNoValue != 0
	}
}

// value is a value of the point.
func (p *point) value(v float64) float64 {
	if p.stale {
		return math.Float64frombits(value.StaleNaN)
	}
	return v
}

// accept checks the times of the current data point. err is the error with which it was read. It
// reports whether the point is to be stored.
func (d *decoder) accept(err error) (bool, error) {
	p := &d.point
	if err != nil {
		return false, err
	}
	if p.time == 0 {
		err = &remotewrite.Rejection{Reason: remotewrite.ReasonPoint, Err: errors.New("data point without time_unix_nano")}
	} else if err = d.rules.TimeRange.Check(millis(p.time)); err == nil {
		err = d.rules.TimeRange.CheckStart(millis(p.start))
	}
	if err == nil {
		return true, nil
	}
	return false, d.refuse(err)
}

// refuse rejects the data point at hand, of which nothing was added.
func (d *decoder) refuse(err error) error {
	d.point.refused = true
	return d.reject(fmt.Errorf("metric %s: %w", quote(d.metric.name), err), 1)
}

// float adds a sample of the data point at hand, without its series.
func (d *decoder) float(v float64) {
	p := &d.point
	d.c.Started(millis(p.start), millis(p.time), p.value(v))
}

// member adds a sample of one of the several series of the data point at hand. widest is the one
// with most labels: it decides whether the point is stored.
func (d *decoder) member(m, widest member, v float64) error {
	p := &d.point
	if p.refused {
		return nil
	}
	d.float(v)
	d.text = append(appendKey(append(d.text[:0], remotewrite.KeysOfOTLP, 'p'), p.key), m.kind)
	if m.kind == memberBucket || m.kind == memberQuantile {
		d.text = protowire.AppendFixed64(d.text, math.Float64bits(m.value))
	}
	return d.place(d.c.Key(d.text), m, widest)
}

// members computes the key that the series of the data point at hand share.
func (d *decoder) members() {
	d.text = append(appendKey(append(d.text[:0], remotewrite.KeysOfOTLP, 'a'), d.metric.key), d.point.attributes.bytes...)
	d.point.key = d.c.Key(d.text)
}

// single gives what was added of the data point at hand to its only series, with exemplars.
func (d *decoder) single(exemplars []byte) error {
	err := d.exemplars(exemplars, func(e exemplar.Exemplar) error { d.c.Exemplar(e); return nil })
	if err != nil {
		return err
	}
	d.text = append(appendKey(append(d.text[:0], remotewrite.KeysOfOTLP, 'v'), d.metric.key), d.point.attributes.bytes...)
	if err := d.place(d.c.Key(d.text), member{}, member{}); err != nil {
		return err
	}
	d.seen()
	return nil
}

// place gives what was added to the series with the key. An unknown series is learned.
func (d *decoder) place(k series.Key, m, widest member) error {
	p := &d.point
	known, err := d.c.Series(k)
	if known || err != nil {
		return err
	}
	if !p.built {
		p.built = true
		if p.shared, err = d.shared(p.attributes.bytes); err == nil {
			_, err = d.of(p.shared, widest)
		}
		if err != nil {
			return d.unplaced(err)
		}
	}
	lset, err := d.of(p.shared, m)
	if err != nil {
		return d.unplaced(err)
	}
	return d.c.Learn(lset)
}

// unplaced removes what was added, because its series breaks a rule.
func (d *decoder) unplaced(err error) error {
	if errors.Is(err, ErrMalformed) {
		return err
	}
	d.point.refused = true
	d.rejected++
	return d.c.Refuse(err)
}

// seen notes the time of the data point at hand if it is stored.
func (d *decoder) seen() {
	if !d.point.refused {
		r, ns := &d.resource, d.point.time
		r.from, r.to = min(r.from, ns), max(r.to, ns)
	}
}

// maxExemplarRunes is the most characters of an exemplar's labels (OpenMetrics 1.0, "Exemplars").
// Attributes that exceed it are left out, and the trace is kept.
const maxExemplarRunes = 128

// exemplars reads the fields with Exemplars of the data point at hand and calls f with each.
func (d *decoder) exemplars(fields []byte, f func(exemplar.Exemplar) error) error {
	r := read(fields, "exemplars")
	for r.next() {
		e, err := d.readExemplar(r.data)
		switch {
		case errors.Is(err, ErrMalformed):
			return err
		case err != nil:
			r.err = d.c.RejectExemplar(err)
		default:
			r.err = f(e)
		}
	}
	return r.err
}

// readExemplar reads an Exemplar: time_unix_nano = 2, as_double = 3, span_id = 4, trace_id = 5,
// as_int = 6, filtered_attributes = 7. One without a time has that of its data point.
func (d *decoder) readExemplar(msg []byte) (e exemplar.Exemplar, err error) {
	var attributes span
	var trace, spanID []byte
	e.Ts = millis(d.point.time)
	given := false
	r := read(msg, "Exemplar")
	for r.next() {
		switch r.num {
		case 2:
			if ns := r.fixed64(); ns != 0 {
				e.Ts, e.HasTs = millis(ns), true
			}
		case 3:
			e.Value, given = r.double(), true
		case 4:
			spanID = r.bytes()
		case 5:
			trace = r.bytes()
		case 6:
			e.Value, given = float64(int64(r.fixed64())), true
		case 7:
			attributes.add(&r)
		}
	}
	if r.err != nil {
		return e, r.err
	}
	if !given {
		return e, errors.New("without a value")
	}
	list, err := d.attributes(attributes.bytes)
	if err != nil {
		return e, err
	}
	ids := []series.Label{{Name: "trace_id", Value: identifier(trace)}, {Name: "span_id", Value: identifier(spanID)}}
	ids = slices.DeleteFunc(ids, func(l series.Label) bool { return l.Value == "" })
	runes := 0
	for _, l := range slices.Concat(list, ids) {
		runes += utf8.RuneCountInString(l.Name) + utf8.RuneCountInString(l.Value)
	}
	if runes > maxExemplarRunes {
		list = nil
	}
	d.scratch.Reset()
	for _, l := range slices.Concat(list, ids) {
		d.scratch.Add(l.Name, l.Value)
	}
	d.scratch.Sort()
	e.Labels = d.scratch.Labels()
	return e, nil
}

// identifier is the text of the identifier of a trace or span, "" for one of zeros, which means
// none.
func identifier(id []byte) string {
	if len(bytes.Trim(id, "\x00")) == 0 {
		return ""
	}
	return hex.EncodeToString(id)
}
