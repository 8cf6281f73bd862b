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

	"github.com/promlake/promlake/internal/remotewrite"
	"github.com/promlake/promlake/internal/series"
)

// attribute is a key and its value as text.
type attribute struct{ key, value string }

// attributes reads KeyValue fields: key = 1, value = 2.
func (d *decoder) attributes(fields []byte) (list []attribute, err error) {
	most := d.rules.Limits.MaxLabelNames + 3 // those that identify a service become two labels
	for len(fields) > 0 {
		f, rest, err := next(fields)
		if err != nil {
			return nil, err
		}
		fields = rest
		if len(list) == most {
			return nil, &remotewrite.Rejection{Reason: remotewrite.ReasonTooManyLabels, Err: fmt.Errorf("more attributes than the limit of %d label names", d.rules.Limits.MaxLabelNames)}
		}
		k, v, err := keyValue(f.data)
		if err != nil {
			return nil, err
		}
		text, err := valueText(v)
		if err != nil {
			return nil, err
		}
		list = append(list, attribute{string(k), text})
	}
	return list, nil
}

// keyValue reads a KeyValue. The value is an AnyValue.
func keyValue(msg []byte) (k, v []byte, err error) {
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return nil, nil, err
		}
		msg = rest
		if f.num != 1 && f.num != 2 {
			continue
		}
		if err := f.message("KeyValue"); err != nil {
			return nil, nil, err
		}
		if f.num == 1 {
			k = f.data
		} else {
			v = f.data
		}
	}
	return k, v, nil
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
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return set, err
		}
		msg = rest
		want := protowire.BytesType
		switch f.num {
		case anyString, anyArray, anyMap, anyBytes:
		case anyBool, anyInt:
			want = protowire.VarintType
		case anyDouble:
			want = protowire.Fixed64Type
		default:
			continue
		}
		if err := f.is(want, "AnyValue"); err != nil {
			return set, err
		}
		set = f
	}
	return set, nil
}

// valueText is an AnyValue as text, as OpenTelemetry's Collector writes it: strings as they are,
// bytes in base64, arrays and maps as JSON.
func valueText(msg []byte) (string, error) {
	f, err := valueOf(msg)
	if err != nil {
		return "", err
	}
	switch f.num {
	case anyString:
		return string(f.data), nil
	case anyBool:
		return strconv.FormatBool(f.val != 0), nil
	case anyInt:
		return strconv.FormatInt(int64(f.val), 10), nil
	case anyDouble:
		return doubleText(math.Float64frombits(f.val)), nil
	case anyBytes:
		return base64.StdEncoding.EncodeToString(f.data), nil
	case anyArray, anyMap:
		if len(f.data) > maxNestedBytes {
			return "", &remotewrite.Rejection{Reason: remotewrite.ReasonValueTooLong, Err: fmt.Errorf("array or map of %d bytes as value of an attribute, the limit is %d", len(f.data), maxNestedBytes)}
		}
		v, err := valueJSON(f, maxNesting)
		if err != nil {
			return "", err
		}
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil { // NaN and infinities
			return "", nil //nolint:nilerr // the Collector's text is empty, too
		}
		return strings.TrimRight(text.String(), "\n"), nil
	}
	return "", nil
}

// valueJSON is a value as encoding/json takes it.
func valueJSON(f field, depth int) (any, error) {
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
	case anyArray:
		return arrayJSON(f.data, depth)
	case anyMap:
		return mapJSON(f.data, depth)
	}
	return nil, nil
}

// arrayJSON reads an ArrayValue: values = 1.
func arrayJSON(msg []byte, depth int) (any, error) {
	list := []any{}
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return nil, err
		}
		if msg = rest; f.num != 1 {
			continue
		}
		if err := f.message("ArrayValue"); err != nil {
			return nil, err
		}
		one, err := valueOf(f.data)
		if err != nil {
			return nil, err
		}
		v, err := valueJSON(one, depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// mapJSON reads a KeyValueList: values = 1.
func mapJSON(msg []byte, depth int) (any, error) {
	out := map[string]any{}
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return nil, err
		}
		if msg = rest; f.num != 1 {
			continue
		}
		if err := f.message("KeyValueList"); err != nil {
			return nil, err
		}
		k, v, err := keyValue(f.data)
		if err != nil {
			return nil, err
		}
		one, err := valueOf(v)
		if err != nil {
			return nil, err
		}
		if out[string(k)], err = valueJSON(one, depth-1); err != nil {
			return nil, err
		}
	}
	return out, nil
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
