package load

import (
	"fmt"
	"time"

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
		b, err := newBatch(f, v, first, min(size, f.Len()-first))
		if err != nil {
			return nil, err
		}
		plan[n%senders] = append(plan[n%senders], b)
	}
	return plan, nil
}

// newBatch builds the requests for size adjacent series. Series behind the fleet's last one belong
// to hosts that replace its own.
func newBatch(f *fleet.Fleet, v wire.Version, first, size int) (batch, error) {
	series := make([]wire.Series, size)
	for i := range series {
		series[i] = wire.Series{Labels: f.Labels(first + i), Counter: f.Counter(first + i)}
	}
	body, err := wire.New(v, series)
	if err != nil {
		return batch{}, fmt.Errorf("build request template: %w", err)
	}
	return batch{first: first, body: body}, nil
}

// churn replaces the batches of a sender one after the other by those of new hosts.
type churn struct {
	share    float64 // of the batches, in every churnPeriod
	offset   float64 // of this sender, 0 to 1, so that the senders do not all round down
	replaced int     // batches so far; more than there are if some were replaced twice
}

// due returns how many more batches out of n are to be replaced when the samples have reached a
// time after the first ones.
func (c *churn) due(n int, passed time.Duration) int {
	periods := float64(passed / churnPeriod)
	return int(periods*c.share*float64(n)+c.offset) - c.replaced
}

// renew replaces the batches that are due.
func (c *churn) renew(f *fleet.Fleet, v wire.Version, batches []batch, passed time.Duration) error {
	for range c.due(len(batches), passed) {
		old := &batches[c.replaced%len(batches)]
		b, err := newBatch(f, v, old.first+f.Len(), old.body.Len())
		if err != nil {
			return err
		}
		*old = b
		c.replaced++
	}
	return nil
}
