package otlp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/series"
)

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
