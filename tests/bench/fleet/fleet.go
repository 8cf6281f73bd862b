// Package fleet turns one captured host into many virtual ones.
//
// Every virtual host has the captured series under its own labels, its own start in the capture and
// values of its own: scaled by a factor that depends on host and series, on the grid that the
// captured values lie on (whole bytes stay whole bytes, pages stay pages, hundredths stay
// hundredths). Everything is a pure function of (host, series, round, time), so two runs send equal
// bytes and rounds need no state.
package fleet

import (
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/tests/bench/capture"
)

// MaxHosts is the largest number of virtual hosts.
const MaxHosts = 1_000_000

// ErrHosts reports a number of hosts outside 1..MaxHosts.
var ErrHosts = errors.New("number of hosts out of range")

// Fleet is a number of virtual hosts. Its series are numbered host by host. It is safe for
// concurrent use.
type Fleet struct {
	hosts  int
	times  []int64 // of the capture, ms
	labels []labels.Labels
	shapes []shape
}

// New builds a fleet of hosts out of a capture, which must not change afterwards.
func New(c *capture.Capture, hosts int) (*Fleet, error) {
	if hosts < 1 || hosts > MaxHosts {
		return nil, fmt.Errorf("%w: %d, want 1 to %d", ErrHosts, hosts, MaxHosts)
	}
	f := &Fleet{hosts: hosts, times: c.Times}
	for _, s := range c.Series {
		f.labels = append(f.labels, s.Labels)
		f.shapes = append(f.shapes, shapeOf(s, c.Times))
	}
	return f, nil
}

// Len returns the number of series of the whole fleet.
func (f *Fleet) Len() int { return f.hosts * len(f.shapes) }

// PerHost returns the number of series of one host.
func (f *Fleet) PerHost() int { return len(f.shapes) }

// Labels returns the labels of series i, 0 ≤ i < Len.
func (f *Fleet) Labels(i int) labels.Labels {
	return withHost(f.labels[i%len(f.labels)], i/len(f.labels))
}

// Counter reports whether series i only ever rises.
func (f *Fleet) Counter(i int) bool { return f.shapes[i%len(f.shapes)].kind == counter }

// Values fills dst with the values of the series first, first+1, … in a scrape round (0, 1, …) at
// time ts (ms since the Unix epoch).
func (f *Fleet) Values(dst []float64, first, round int, ts int64) {
	for i := range dst {
		n := first + i
		host, series := n/len(f.shapes), n%len(f.shapes)
		dst[i] = f.shapes[series].at(f.times, seed(host, series), round+phase(host), ts)
	}
}
