package otlp

import (
	"encoding/json"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// The memory (bytes) that OpenTelemetry's package needs at most for a part of a JSON message.
const (
	costObject = 320 // the largest struct, of a data point or metric
	costValue  = 32  // an element of an array, or a number
)

// FromJSON turns a message in OTLP's JSON form into its protobuf form. It takes the memory for both
// from the room. Errors are ErrMalformed and the room's.
func FromJSON(msg []byte, room *remotewrite.Room) ([]byte, error) {
	if !json.Valid(msg) { // which also bounds how deep values are nested
		return nil, fmt.Errorf("%w: invalid JSON", ErrMalformed)
	}
	objects, values, depth := measure(msg)
	if depth > maxNesting*4 {
		return nil, fmt.Errorf("%w: JSON with values %d deep in one another, the limit is %d", ErrMalformed, depth, maxNesting*4)
	}
	need := costObject*objects + costValue*values + int64(len(msg))
	if !room.Take(need) {
		if err := room.Reserve(0); err != nil {
			return nil, err
		}
	}
	metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(msg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	out, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return out, nil
}

// measure counts the objects and values of valid JSON, and how deep they are in one another.
func measure(msg []byte) (objects, values int64, deepest int) {
	depth, text := 0, false
	for i := 0; i < len(msg); i++ {
		switch c := msg[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
			if c == '{' {
				objects++
			}
			values++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	return objects, values, deepest
}
