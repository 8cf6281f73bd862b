package query

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/promlake/promlake/tests/bench/server"
)

// Names of the data sets.
const (
	mixed = "mixed" // metrics of many kinds, and a long history
	hosts = "hosts" // scrapes of node_exporters
	live  = "live"  // scrapes of node_exporters until now
)

// fewestHosts of the data set hosts: its queries name host_3.
const fewestHosts = 4

// start is the beginning of the data: in the past, so that all its windows are closed, and of the
// data set mixed at the end of the long history.
var start = time.Date(2026, time.March, 3, 2, 0, 0, 0, time.UTC)

// scale is a data set, and how much of it there is. In the set mixed, the metric m has Series
// series of Samples samples each; a and b have a tenth of its series each, and h_bucket as many in
// all its buckets together. The sets hosts and live have Hosts hosts, and Samples samples of each
// series; another benchmark's set has its own description.
type scale struct {
	Set     string `json:"set,omitempty"` // empty: mixed
	Hosts   int    `json:"hosts,omitempty"`
	Series  int    `json:"series,omitempty"`
	Samples int    `json:"samples_per_series"`
	// span of the long history, which ends with the main data
	History time.Duration `json:"history_ns,omitempty"`
	// of the set live: when it begins, and how much faster than sample time it is written
	Begin time.Time `json:"begin,omitzero"`
	Pace  float64   `json:"pace,omitempty"`

	described *Set // by another benchmark; Set is its name
}

// Set is a data set that another benchmark describes. Its samples lie a millisecond after the steps
// of its questions, see hostsShift.
type Set struct {
	Name     string // of its rows, with its size; sets of other data have other names
	Begin    time.Time
	Interval time.Duration // between two samples of a series
	Samples  int           // of each series
	// Series calls add for each series, with its labels in order of their names, and the function
	// that returns its next value.
	Series func(add func(labels []prompb.Label, next func() float64))
	// A request has the samples of this time of 1,000 series; Apart repeats the labels for each
	// sample, in order of time, as Prometheus sends them.
	Slice     time.Duration
	Apart     bool
	Questions []Question // none: only the load is measured
}

// End is when the data ends: after all of its samples.
func (d *Set) End() time.Time { return d.Begin.Add(time.Duration(d.Samples) * d.Interval) }

func (d *Set) generators() (all []*generator) {
	d.Series(func(labels []prompb.Label, next func() float64) {
		all = append(all, &generator{labels: labels, first: d.Begin.UnixMilli() + 1, interval: d.Interval.Milliseconds(), next: next})
	})
	return all
}

func (d *Set) feed(ctx context.Context, url string) (samples, series int64, err error) {
	all, arrange := d.generators(), together
	if d.Apart {
		arrange = apart
	}
	samples, err = feedSlices(ctx, url, all, d.Begin, d.End(), d.Slice, arrange)
	return samples, int64(len(all)), err
}

// begin is when the data begins.
func (s scale) begin() time.Time {
	switch {
	case s.described != nil:
		return s.described.Begin
	case s.Set == live:
		return s.Begin
	}
	return start
}

// end is when the data ends: after all of its samples.
func (s scale) end() time.Time { return s.begin().Add(time.Duration(s.Samples) * s.interval()) }

// months is the number of months in which there are samples.
func (s scale) months() int {
	first, last := s.begin(), s.end().Add(-1)
	if h := s.end().Add(-s.History); h.Before(first) {
		first = h
	}
	return (last.Year()-first.Year())*12 + int(last.Month()-first.Month()) + 1
}

// interval is between two samples of a series.
func (s scale) interval() time.Duration {
	if s.described != nil {
		return s.described.Interval
	}
	return interval
}

// questions returns the queries over the data.
func (s scale) questions() []Question {
	switch {
	case s.described != nil:
		return s.described.Questions
	case s.Set == hosts:
		return s.hostQuestions()
	case s.Set == live:
		return s.liveQuestions()
	}
	return s.mixedQuestions()
}

// feed writes the data to a server, and returns the numbers of samples and series.
func (s scale) feed(ctx context.Context, p *server.Process) (samples, series int64, err error) {
	switch {
	case s.described != nil:
		return s.described.feed(ctx, p.WriteURL())
	case s.Set != "":
		return feedHosts(ctx, p.WriteURL(), s)
	}
	return feed(ctx, p.WriteURL(), s)
}

func (f *Flags) scale() (scale, error) {
	if f.Rounds < 0 {
		return scale{}, fmt.Errorf("%d rounds: want no fewer than 0", f.Rounds)
	}
	if f.Set == hosts {
		return f.scaleOfHosts()
	}
	s := scale{Series: f.Series, History: f.History}
	if f.Series < 1 || f.Samples/f.Series < 4 {
		return s, fmt.Errorf("%d samples of %d series: want at least one series, and a minute of samples", f.Samples, f.Series)
	}
	s.Samples = f.Samples / f.Series
	if main := s.end().Sub(start); f.History < main || f.History%time.Minute != 0 {
		return s, fmt.Errorf("history of %s: want whole minutes, and at least the %s of the main data", f.History, main)
	}
	return s, nil
}

// scaleOfHosts is the scale of the data set hosts.
func (f *Flags) scaleOfHosts() (scale, error) {
	s := scale{Set: f.Set, Hosts: f.Hosts}
	s.Samples = int(f.Span / s.interval())
	if f.Hosts < fewestHosts || f.Span < 20*time.Minute || f.Span > 24*time.Hour || f.Span%time.Minute != 0 {
		return s, fmt.Errorf("%d hosts for %s: want at least %d hosts, and whole minutes, from 20 minutes to a day", f.Hosts, f.Span, fewestHosts)
	}
	return s, nil
}
