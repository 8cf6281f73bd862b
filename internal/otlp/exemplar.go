package otlp

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/exemplar"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/remotewrite"
)

// maxExemplarRunes is the most characters of an exemplar's labels (OpenMetrics 1.0, "Exemplars").
// Attributes that exceed it are left out, and the trace is kept.
const maxExemplarRunes = 128

// exemplars adds the fields with Exemplars of the data point at hand, for its only series.
func (d *decoder) exemplars(fields []byte) error {
	for len(fields) > 0 {
		f, rest, err := next(fields)
		if err != nil {
			return err
		}
		fields = rest
		e, err := d.readExemplar(f.data)
		if err != nil {
			if err := d.warn(err); err != nil {
				return err
			}
			continue
		}
		d.c.Exemplar(e)
	}
	return nil
}

// readExemplar reads an Exemplar: time_unix_nano = 2, as_double = 3, span_id = 4, trace_id = 5,
// as_int = 6, filtered_attributes = 7. One without a time has that of its data point.
func (d *decoder) readExemplar(msg []byte) (e exemplar.Exemplar, err error) {
	var attributes span
	var trace, spanID []byte
	e.Ts, e.HasTs = millis(d.point.time), true
	given := false
	for b := msg; len(b) > 0; {
		f, rest, err := next(b)
		if err != nil {
			return e, err
		}
		switch f.num {
		case 2:
			if f.val != 0 {
				e.Ts = millis(f.val)
			}
			err = f.is(protowire.Fixed64Type, "Exemplar")
		case 3:
			e.Value, given, err = math.Float64frombits(f.val), true, f.is(protowire.Fixed64Type, "Exemplar")
		case 4:
			spanID, err = f.data, f.message("Exemplar")
		case 5:
			trace, err = f.data, f.message("Exemplar")
		case 6:
			e.Value, given, err = float64(int64(f.val)), true, f.is(protowire.Fixed64Type, "Exemplar")
		case 7:
			attributes.add(msg, len(msg)-len(b), len(msg)-len(rest))
			err = f.message("Exemplar")
		}
		if err != nil {
			return e, err
		}
		b = rest
	}
	if !given {
		return e, &remotewrite.Rejection{Reason: remotewrite.ReasonExemplar, Err: errors.New("exemplar without a value")}
	}
	list, err := d.attributes(attributes.of(msg))
	if err != nil {
		return e, err
	}
	var ids []attribute
	if text, ok := identifier(trace); ok {
		ids = append(ids, attribute{"trace_id", text})
	}
	if text, ok := identifier(spanID); ok {
		ids = append(ids, attribute{"span_id", text})
	}
	runes := 0
	for _, a := range slices.Concat(list, ids) {
		runes += utf8.RuneCountInString(a.key) + utf8.RuneCountInString(a.value)
	}
	if runes > maxExemplarRunes {
		list = nil
	}
	d.scratch.Reset()
	for _, a := range slices.Concat(list, ids) {
		d.scratch.Add(a.key, a.value)
	}
	d.scratch.Sort()
	e.Labels = d.scratch.Labels()
	return e, nil
}

// identifier is the text of the identifier of a trace or span. One of zeros means none.
func identifier(id []byte) (string, bool) {
	for _, b := range id {
		if b != 0 {
			return hex.EncodeToString(id), true
		}
	}
	return "", false
}
