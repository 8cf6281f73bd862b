package api

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/prom/timeparam"
)

// A Format writes the samples of series. One export uses it.
type Format interface {
	ContentType() string
	// Append appends the samples, which are in order and at least one.
	Append(dst []byte, lset labels.Labels, t []int64, v []float64) []byte
}

// jsonLines is the format of imports.DecodeJSON.
type jsonLines struct{}

// JSON returns the format of lines that imports.DecodeJSON reads.
func JSON() Format { return jsonLines{} }

func (jsonLines) ContentType() string { return "application/stream+json; charset=utf-8" }

func (jsonLines) Append(dst []byte, lset labels.Labels, t []int64, v []float64) []byte {
	dst = append(dst, `{"metric":{`...)
	first := true
	lset.Range(func(l labels.Label) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendJSON(append(appendJSON(dst, l.Name), ':'), l.Value)
	})
	dst = append(dst, `},"values":[`...)
	for i, x := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONValue(dst, x)
	}
	dst = append(dst, `],"timestamps":[`...)
	for i, x := range t {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, x, 10)
	}
	return append(dst, "]}\n"...)
}

// appendJSON appends a text as JSON.
func appendJSON(dst []byte, text string) []byte {
	if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= 0x7f }) {
		return append(append(append(dst, '"'), text...), '"')
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text cannot fail
	return append(dst, bytes.TrimRight(out.Bytes(), "\n")...)
}

// appendJSONValue appends a value; JSON has no numbers for some.
func appendJSONValue(dst []byte, v float64) []byte {
	switch {
	case value.IsStaleNaN(v):
		return append(dst, "null"...)
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	case v == math.Trunc(v) && math.Abs(v) < 1e15 && (v != 0 || !math.Signbit(v)):
		return strconv.AppendInt(dst, int64(v), 10)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

// csvLines has a line for each sample, with the columns that the request names.
type csvLines struct {
	columns []csvColumn
	record  []string
	buffer  bytes.Buffer
	csv     *csv.Writer
}

// csvColumn is a column: a label, unless it is the value or has a clock.
type csvColumn struct {
	label string
	value bool
	clock *timeparam.Clock
}

// CSV returns the format that a request's parameter format names: a list of labels, __value__, and
// __timestamp__ with a format of times.
func CSV(text string) (Format, error) {
	f := &csvLines{}
	if text == "" {
		return nil, errors.New(`invalid parameter "format": want columns, as in format=__name__,job,__value__,__timestamp__:unix_ms`)
	}
	for part := range strings.SplitSeq(text, ",") {
		name, clock, timed := strings.Cut(part, ":")
		switch c := (csvColumn{label: part}); {
		case part == "":
			return nil, errors.New(`invalid parameter "format": a column has no name`)
		case part == "__value__":
			f.columns = append(f.columns, csvColumn{value: true})
		case name == "__timestamp__":
			if !timed {
				clock = "unix_ms"
			}
			parsed, err := timeparam.ParseClock(clock)
			if err != nil {
				return nil, fmt.Errorf("invalid parameter %q: %w", "format", err)
			}
			f.columns = append(f.columns, csvColumn{clock: &parsed})
		default:
			f.columns = append(f.columns, c)
		}
	}
	f.csv, f.record = csv.NewWriter(&f.buffer), make([]string, len(f.columns))
	return f, nil
}

func (*csvLines) ContentType() string { return "text/csv; charset=utf-8" }

// Append leaves out stale markers, which are no values.
func (f *csvLines) Append(dst []byte, lset labels.Labels, t []int64, v []float64) []byte {
	for i, c := range f.columns {
		if !c.value && c.clock == nil {
			f.record[i] = lset.Get(c.label)
		}
	}
	for n := range t {
		if value.IsStaleNaN(v[n]) {
			continue
		}
		for i, c := range f.columns {
			switch {
			case c.value:
				f.record[i] = strconv.FormatFloat(v[n], 'g', -1, 64)
			case c.clock != nil:
				f.record[i] = string(c.clock.Append(nil, t[n]))
			}
		}
		_ = f.csv.Write(f.record) // into memory
	}
	f.csv.Flush()
	dst = append(dst, f.buffer.Bytes()...)
	f.buffer.Reset()
	return dst
}
