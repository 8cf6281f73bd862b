package load

import (
	"fmt"

	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/wire"
)

// batch is a run of adjacent series that are always sent together.
type batch struct {
	first int // number of the first series in the fleet
	body  *wire.Template
}

// planBatches divides the fleet into batches of size series (the last one may be smaller) and
// assigns them to senders in turn. A series always stays with its sender, which sends its batches
// round by round, so the samples of every series are sent in order of time.
func planBatches(f *fleet.Fleet, v wire.Version, size, senders int) ([][]batch, error) {
	plan := make([][]batch, senders)
	for n, first := 0, 0; first < f.Len(); n, first = n+1, first+size {
		series := make([]wire.Series, min(size, f.Len()-first))
		for i := range series {
			series[i] = wire.Series{Labels: f.Labels(first + i), Counter: f.Counter(first + i)}
		}
		body, err := wire.New(v, series)
		if err != nil {
			return nil, fmt.Errorf("build request template: %w", err)
		}
		plan[n%senders] = append(plan[n%senders], batch{first: first, body: body})
	}
	return plan, nil
}
