package ingest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/lineprotocol"
	"github.com/promlake/promlake/internal/senders/opentsdb"
)

// maxOffences is how many offences of a request are listed by protocols whose answers have lists.
const maxOffences = 100

// maxOriginal is the number of bytes of a refused line or data point that an answer repeats.
const maxOriginal = 1 << 10

// influxOffence is a line that was refused, as InfluxDB 3 describes it.
type influxOffence struct {
	Line    string `json:"original_line"`
	Number  int    `json:"line_number"`
	Message string `json:"error_message"`
}

// influxOffences describes the offences of a batch, whose places are numbers of lines. They ascend,
// except for those of series that were new: these come last.
func influxOffences(body []byte, offences []remotewrite.Offence) (out []influxOffence) {
	lines := map[int]string{}
	for _, o := range offences {
		lines[o.Place] = ""
	}
	p := lineprotocol.NewParser(body)
	for {
		l, err := p.Next()
		if l == nil && err == nil {
			break
		}
		if _, ok := lines[p.Number()]; ok {
			text := p.Text()
			lines[p.Number()] = strings.ToValidUTF8(string(text[:min(len(text), maxOriginal)]), "�")
		}
	}
	for _, o := range offences {
		x := influxOffence{lines[o.Place], o.Place, strings.TrimPrefix(o.Err.Error(), fmt.Sprintf("line %d: ", o.Place))}
		if len(out) == 0 || out[len(out)-1] != x { // fields of a line can have the same offence
			out = append(out, x)
		}
	}
	return out
}

// influxAnswer is the body of InfluxDB 3 for a request of which something was refused, or nil.
func influxAnswer(err error, offences []influxOffence) any {
	switch {
	case len(offences) == 0:
		return nil
	case is[*errPartial](err):
		return struct {
			Error string          `json:"error"`
			Data  []influxOffence `json:"data"`
		}{"partial write of line protocol occurred", offences}
	case is[*errWhole](err):
		return struct {
			Error string        `json:"error"`
			Data  influxOffence `json:"data"`
		}{"parsing failed for write_lp endpoint", offences[0]}
	}
	return nil
}

// putOffence is a data point that was refused, as OpenTSDB describes it.
type putOffence struct {
	Point json.RawMessage `json:"datapoint,omitempty"`
	Error string          `json:"error"`
}

// putOffences describes the offences of a batch, whose places are numbers of data points.
func putOffences(body []byte, offences []remotewrite.Offence) []putOffence {
	points := map[int]json.RawMessage{}
	for _, o := range offences {
		points[o.Place] = nil
	}
	opentsdb.Each(body, func(n int, raw []byte) {
		if _, ok := points[n]; ok && len(raw) <= maxOriginal && json.Valid(raw) {
			points[n] = append([]byte(nil), raw...) // the body is released before the answer
		}
	})
	out := []putOffence{}
	for _, o := range offences {
		out = append(out, putOffence{points[o.Place], o.Err.Error()})
	}
	return out
}
