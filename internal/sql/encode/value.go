package encode

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// sink takes what an appender has gathered, so that a large value is never in memory as a whole. A
// nil sink takes nothing.
type sink struct {
	w   io.Writer
	err error // of the first write that failed
}

const (
	fullBytes  = 64 << 10 // a sink takes so many bytes
	quoteBytes = 4 << 10  // of a long string are quoted at once
)

// full returns to, which is empty afterwards if it had enough bytes for the sink.
func (s *sink) full(to []byte) []byte {
	if s == nil || len(to) < fullBytes {
		return to
	}
	if s.err == nil {
		_, s.err = s.w.Write(to)
	}
	return to[:0]
}

// appender appends the JSON of a row's value.
type appender func(to []byte, row int) []byte

// appenderOf returns the appender of a column, which may give what it gathers to a sink.
//
// Numbers are JSON numbers; what JSON has no number for is the string that Prometheus has: "NaN",
// "+Inf", "-Inf". Times are RFC 3339 strings in UTC. A map with text keys is an object. All other
// types are as arrow-go writes them.
func appenderOf(a arrow.Array, out *sink) appender {
	return func(to []byte, row int) []byte {
		if a.IsNull(row) {
			return append(to, "null"...)
		}
		return value(to, a, row, out)
	}
}

// appendersOf returns the appenders of the columns of a batch.
func appendersOf(b arrow.RecordBatch, out *sink) []appender {
	columns := make([]appender, b.NumCols())
	for i := range columns {
		columns[i] = appenderOf(b.Column(i), out)
	}
	return columns
}

func value(to []byte, a arrow.Array, row int, out *sink) []byte {
	switch a := a.(type) {
	case *array.Int32:
		return strconv.AppendInt(to, int64(a.Value(row)), 10)
	case *array.Int64:
		return strconv.AppendInt(to, a.Value(row), 10)
	case *array.Float32:
		return float(to, float64(a.Value(row)), 32)
	case *array.Float64:
		return float(to, a.Value(row), 64)
	case *array.Decimal128:
		t := a.DataType().(*arrow.Decimal128Type)
		return append(to, a.Value(row).ToString(t.Scale)...)
	case *array.String:
		return quoted(to, a.Value(row), out)
	case *array.Timestamp:
		// A time has an offset if it is one with a time zone, and microseconds if it has a part of
		// a second.
		t := a.DataType().(*arrow.TimestampType)
		at := a.Value(row).ToTime(t.Unit)
		layout := "2006-01-02T15:04:05.999999999"
		if t.TimeZone != "" {
			layout = time.RFC3339Nano
		}
		to = append(to, '"')
		to = at.UTC().AppendFormat(to, layout)
		return append(to, '"')
	case *array.Map:
		// A map is an object, or a list of pairs if its keys are not text.
		from, end := a.ValueOffsets(row)
		key, item := appenderOf(a.Keys(), out), appenderOf(a.Items(), out)
		open, between, closed, pair, pairEnd := "{", ":", "}", "", ""
		if _, ok := a.Keys().(*array.String); !ok {
			open, between, closed, pair, pairEnd = "[", ",", "]", "[", "]"
		}
		to = append(to, open...)
		for i := int(from); i < int(end); i++ {
			if i > int(from) {
				to = append(to, ',')
			}
			to = append(key(append(to, pair...), i), between...)
			to = out.full(append(item(to, i), pairEnd...))
		}
		return append(to, closed...)
	case array.ListLike:
		from, end := a.ValueOffsets(row)
		item := appenderOf(a.ListValues(), out)
		to = append(to, '[')
		for i := int(from); i < int(end); i++ {
			if i > int(from) {
				to = append(to, ',')
			}
			to = out.full(item(to, i))
		}
		return append(to, ']')
	case *array.Struct:
		t := a.DataType().(*arrow.StructType)
		to = append(to, '{')
		for i := range a.NumField() {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(quoted(to, t.Field(i).Name, out), ':')
			to = appenderOf(a.Field(i), out)(to, row)
		}
		return append(to, '}')
	}
	text, err := json.Marshal(a.GetOneForMarshal(row))
	if err != nil { // of a type that has no JSON
		return quoted(to, a.ValueStr(row), out)
	}
	return append(to, text...)
}

func float(to []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(to, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(to, `"+Inf"`...)
	case math.IsInf(f, -1):
		return append(to, `"-Inf"`...)
	}
	format := byte('f')
	if x := math.Abs(f); x != 0 && (x < 1e-6 || x >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(to, f, format, -1, bits)
}

// quoted appends a JSON string.
func quoted(to []byte, s string, out *sink) []byte {
	to = append(to, '"')
	for len(s) > quoteBytes {
		n := quoteBytes
		for !utf8.RuneStart(s[n]) && n > quoteBytes-utf8.UTFMax {
			n--
		}
		to = out.full(escaped(to, s[:n]))
		s = s[n:]
	}
	return append(escaped(to, s), '"')
}

// escaped appends the text of a JSON string without its quotes.
func escaped(to []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			text, err := json.Marshal(s)
			if err != nil { // impossible for a string
				return to
			}
			return append(to, text[1:len(text)-1]...)
		}
	}
	return append(to, s...)
}
