package fleet

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/tests/bench/capture"
)

// Replay is a number of hosts that each send the captured values repeatedly, in order. Host h
// starts at its own position in the capture and scrapes at its own millisecond. When the capture
// starts again, counters continue from their last values, on the grid of their own decimals; gauges
// repeat; clocks follow the time. It is safe for concurrent use.
type Replay struct {
	hosts    int
	steps    int   // scrapes in the capture
	start    int64 // ms: before the first scrape of every host
	interval int64 // ms
	vary     bool
	labels   []labels.Labels
	tapes    []tape // of host 0, then of host 1, …
}

// ReplaySettings configure a Replay.
type ReplaySettings struct {
	Hosts    int
	Rounds   int           // number of scrapes of every host
	Start    time.Time     // before the first scrape of every host
	Interval time.Duration // between two scrapes of a host, whole ms
	// Vary scales every series by a different factor in every host and every pass through the
	// capture, on the grid of its values. Without it, hosts differ only in their start, and all
	// passes are equal, which real data is not, and which makes it compress better.
	Vary bool
}

// NewReplay plays a capture, which must not change afterwards.
func NewReplay(c *capture.Capture, s ReplaySettings) (*Replay, error) {
	if s.Hosts < 1 || s.Hosts > MaxHosts {
		return nil, fmt.Errorf("%w: %d, want 1 to %d", ErrHosts, s.Hosts, MaxHosts)
	}
	r := &Replay{hosts: s.Hosts, steps: len(c.Times), start: s.Start.UnixMilli(), interval: s.Interval.Milliseconds(), vary: s.Vary}
	laps := s.Rounds/r.steps + 2 // a host begins somewhere in the first
	shapes := make([]shape, len(c.Series))
	for i, series := range c.Series {
		r.labels = append(r.labels, series.Labels)
		shapes[i] = shapeOf(series, c.Times)
	}
	for host := range s.Hosts {
		for i := range shapes {
			t, err := newTape(&shapes[i], c.Times, seed(host, i), laps, s.Vary)
			if err != nil {
				return nil, fmt.Errorf("prepare %s: %w", r.labels[i], err)
			}
			r.tapes = append(r.tapes, t)
		}
	}
	return r, nil
}

// Hosts returns the number of hosts.
func (r *Replay) Hosts() int { return r.hosts }

// PerHost returns the number of series of one host.
func (r *Replay) PerHost() int { return len(r.labels) }

// Labels returns the labels of a host's series, 0 ≤ series < PerHost.
func (r *Replay) Labels(host, series int) labels.Labels { return withHost(r.labels[series], host) }

// Time returns when (ms) a host is scraped in a round (0, 1, …).
func (r *Replay) Time(host, round int) int64 {
	return r.start + int64(seed(host, 0)%uint64(r.interval)) + int64(round)*r.interval
}

// Value returns the value of a host's series in a round.
func (r *Replay) Value(host, series, round int) float64 {
	n := host*r.steps/r.hosts + round
	return r.tapes[host*len(r.labels)+series].at(n/r.steps, n%r.steps, r.Time(host, round))
}
