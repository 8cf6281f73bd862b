package otlp

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// attributes reads KeyValue fields: key = 1, value = 2. Values become texts.
func (d *decoder) attributes(fields []byte) (list []series.Label, err error) {
	most := d.rules.Limits.MaxLabelNames + 3 // those that identify a service become two labels
	r := read(fields, "attributes")
	for r.next() {
		if len(list) == most {
			return nil, &remotewrite.Rejection{Reason: remotewrite.ReasonTooManyLabels, Err: fmt.Errorf("more attributes than the limit of %d label names", d.rules.Limits.MaxLabelNames)}
		}
		k, v, err := keyValue(r.data)
		if err != nil {
			return nil, err
		}
		text, err := valueText(v)
		if err != nil {
			return nil, err
		}
		list = append(list, series.Label{Name: string(k), Value: text})
	}
	return list, r.err
}

// keyValue reads a KeyValue. The value is an AnyValue.
func keyValue(msg []byte) (k, v []byte, err error) {
	r := read(msg, "KeyValue")
	for r.next() {
		switch r.num {
		case 1:
			k = r.bytes()
		case 2:
			v = r.bytes()
		}
	}
	return k, v, r.err
}

// Bounds of arrays and maps as values of attributes.
const (
	maxNesting     = 32
	maxNestedBytes = 64 << 10
)

// The fields of an AnyValue.
const (
	anyString = 1
	anyBool   = 2
	anyInt    = 3
	anyDouble = 4
	anyArray  = 5
	anyMap    = 6
	anyBytes  = 7
)

// valueOf returns the field of an AnyValue that is set, the last one if several are.
func valueOf(msg []byte) (set field, err error) {
	r := read(msg, "AnyValue")
	for r.next() {
		switch r.num {
		case anyString, anyArray, anyMap, anyBytes:
			r.is(protowire.BytesType)
		case anyBool, anyInt:
			r.is(protowire.VarintType)
		case anyDouble:
			r.is(protowire.Fixed64Type)
		default:
			continue
		}
		set = r.field
	}
	return set, r.err
}

// valueText is an AnyValue as text, as OpenTelemetry's Collector writes it: strings as they are,
// bytes in base64, arrays and maps as JSON.
func valueText(msg []byte) (string, error) {
	f, err := valueOf(msg)
	if err != nil {
		return "", err
	}
	if (f.num == anyArray || f.num == anyMap) && len(f.data) > maxNestedBytes {
		return "", &remotewrite.Rejection{Reason: remotewrite.ReasonValueTooLong, Err: fmt.Errorf("array or map of %d bytes as value of an attribute, the limit is %d", len(f.data), maxNestedBytes)}
	}
	v, err := valueJSON(msg, maxNesting)
	if err != nil {
		return "", err
	}
	switch x := v.(type) {
	case nil:
		return "", nil
	case string:
		return x, nil
	case bool:
		return strconv.FormatBool(x), nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case float64:
		return doubleText(x), nil
	case []byte:
		return base64.StdEncoding.EncodeToString(x), nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // NaN and infinities
		return "", nil // the Collector's text is empty, too
	}
	return strings.TrimRight(text.String(), "\n"), nil
}

// valueJSON is a value as encoding/json takes it.
func valueJSON(msg []byte, depth int) (any, error) {
	f, err := valueOf(msg)
	if err != nil {
		return nil, err
	}
	if depth == 0 {
		return nil, fmt.Errorf("%w: AnyValue: more than %d values in one another", ErrMalformed, maxNesting)
	}
	switch f.num {
	case anyString:
		return string(f.data), nil
	case anyBool:
		return f.val != 0, nil
	case anyInt:
		return int64(f.val), nil
	case anyDouble:
		return math.Float64frombits(f.val), nil
	case anyBytes:
		return f.data, nil
	case anyArray: // values = 1
		list := []any{}
		err := each(f.data, 1, "ArrayValue", func(value []byte) error {
			v, err := valueJSON(value, depth-1)
			list = append(list, v)
			return err
		})
		return list, err
	case anyMap: // values = 1
		out := map[string]any{}
		err := each(f.data, 1, "KeyValueList", func(pair []byte) error {
			k, v, err := keyValue(pair)
			if err == nil {
				out[string(k)], err = valueJSON(v, depth-1)
			}
			return err
		})
		return out, err
	}
	return nil, nil
}

// doubleText writes a number as ECMAScript does.
func doubleText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	text, _ := json.Marshal(v) // fails for the values above only
	return string(text)
}

// appendKey appends the bytes of a key.
func appendKey(dst []byte, k series.Key) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, k.Lo), k.Hi)
}
