package cost

import (
	"fmt"
	"time"

	"github.com/golang/snappy"

	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/wire"
)

// body is a request of the same series in every round.
type body struct {
	first    int
	template *wire.Template
	values   []float64
	raw, out []byte
}

func templates(hosts *fleet.Fleet, batch int) ([]*body, error) {
	if batch < 1 {
		return nil, fmt.Errorf("batch %d: want 1 or more samples", batch)
	}
	var out []*body
	for first := 0; first < hosts.Len(); first += batch {
		series := make([]wire.Series, min(batch, hosts.Len()-first))
		for i := range series {
			series[i] = wire.Series{Labels: hosts.Labels(first + i), Counter: hosts.Counter(first + i)}
		}
		t, err := wire.New(wire.V1, series)
		if err != nil {
			return nil, fmt.Errorf("make requests: %w", err)
		}
		out = append(out, &body{first: first, template: t, values: make([]float64, len(series))})
	}
	return out, nil
}

// encode returns the body of a round; it is overwritten by the next one.
func (b *body) encode(hosts *fleet.Fleet, round int, at time.Time) []byte {
	ts := at.UnixMilli()
	hosts.Values(b.values, b.first, round, ts)
	b.raw = b.template.Append(b.raw[:0], ts, b.values)
	b.out = snappy.Encode(b.out[:cap(b.out)], b.raw)
	return b.out
}
