package load

import (
	"math"
	"slices"
	"time"
)

// request is the size and cost of one request.
type request struct {
	samples int
	round   int
	took    time.Duration
	body    int // bytes before compression
	wire    int // bytes of the compressed body
}

// tally accounts for requests. One goroutine writes it.
type tally struct {
	outcomes  map[string]int    // requests by outcome
	messages  map[string]string // the first message of every kind of failure
	failed    int               // requests
	sent      int64             // samples in all requests
	accepted  int64             // samples in requests that succeeded
	body      int64             // bytes
	wire      int64             // bytes
	lastRound int               // the highest round of which a request was sent
	latencies []time.Duration   // of all requests
}

func (t *tally) add(o outcome, r request) {
	if t.outcomes == nil {
		t.outcomes, t.messages = map[string]int{}, map[string]string{}
	}
	t.outcomes[o.kind]++
	if o.ok {
		t.accepted += int64(r.samples)
	} else {
		t.failed++
		if _, seen := t.messages[o.kind]; !seen {
			t.messages[o.kind] = o.message
		}
	}
	t.sent += int64(r.samples)
	t.body += int64(r.body)
	t.wire += int64(r.wire)
	t.lastRound = max(t.lastRound, r.round)
	t.latencies = append(t.latencies, r.took)
}

// merge adds up the tallies of several senders, in order.
func merge(parts []*tally) *tally {
	sum := &tally{outcomes: map[string]int{}, messages: map[string]string{}}
	for _, p := range parts {
		for k, n := range p.outcomes {
			sum.outcomes[k] += n
		}
		for k, m := range p.messages {
			if _, seen := sum.messages[k]; !seen {
				sum.messages[k] = m
			}
		}
		sum.failed += p.failed
		sum.sent += p.sent
		sum.accepted += p.accepted
		sum.body += p.body
		sum.wire += p.wire
		sum.lastRound = max(sum.lastRound, p.lastRound)
		sum.latencies = append(sum.latencies, p.latencies...)
	}
	slices.Sort(sum.latencies)
	return sum
}

// percentile returns the smallest of the sorted durations that at least the share q of them do not
// exceed (nearest rank).
func percentile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
