package jsonlines

import (
	"bytes"
	"math"

	stalemarker "github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/jsontext"
)

var stale = math.Float64frombits(stalemarker.StaleNaN)

const wantValue = `a number, "NaN", "Infinity", "-Infinity" or null`

// value reads a value of a sample.
func value(p *jsontext.Parser) (float64, error) {
	at := *p
	switch p.Peek() {
	case 'n':
		if raw, err := p.Raw(); err == nil && string(bytes.TrimSpace(raw)) == "null" {
			return stale, nil
		}
	case '"':
		s, err := p.String()
		if err != nil {
			return 0, err
		}
		switch s {
		case "NaN", "nan":
			return math.NaN(), nil
		case "Infinity", "infinity", "Inf", "inf", "+Inf":
			return math.Inf(1), nil
		case "-Infinity", "-infinity", "-Inf", "-inf":
			return math.Inf(-1), nil
		}
	default:
		return p.Float(wantValue)
	}
	return 0, at.Unexpected(wantValue)
}
