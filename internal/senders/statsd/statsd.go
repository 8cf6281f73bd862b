// Package statsd reads lines of StatsD and adds them up
// (https://github.com/statsd/statsd/blob/master/docs/metric_types.md), with the tags of DogStatsD,
// InfluxDB, Librato and SignalFx. Names, units and types of metrics are those that statsd_exporter
// has without a mapping.
package statsd

import (
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/base/memory"
)

// Timers is what timers, histograms and distributions become.
type Timers string

// The forms.
const (
	// Summary is a summary with the quantiles 0.5, 0.9 and 0.99 of the last ten minutes.
	Summary Timers = "summary"
	// Native is a native histogram.
	Native Timers = "native-histogram"
)

// Settings are those of an aggregator.
type Settings struct {
	Timers       Timers
	MaxSeries    int           // that are written at a flush
	MaxSetValues int           // distinct values of all sets between two flushes
	TTL          time.Duration // after its last event a series ends; 0: never

	// MaxStateBytes bounds the memory of all of this. It counts as a quarter of the limit of Memory,
	// the process's budget to which it is charged, if that is less.
	MaxStateBytes int64
	Memory        *memory.Budget
}

// The reasons for which events are left out.
const (
	ReasonLine      = "invalid_line"
	ReasonEvent     = "event" // an event or a service check of DogStatsD
	ReasonConflict  = "conflicting_type"
	ReasonSeries    = "max_series"
	ReasonSetValues = "max_set_values"
	// ReasonStateBytes: there is no memory for more series, or for more values of sets.
	ReasonStateBytes = "max_state_bytes"
)

// The reasons for which a part of an event is ignored.
const (
	ReasonTag  = "invalid_tag"
	ReasonRate = "invalid_sample_rate" // the event counts once
)

// Refusal is the error for events, or parts of them, that are left out.
type Refusal struct {
	Reason string
	Err    error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Err, r.Reason) }

// Unwrap returns the error without the reason.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(reason, format string, args ...any) error {
	return &Refusal{reason, fmt.Errorf(format, args...)}
}

// kind is what events of a metric add up to.
type kind uint8

const (
	counter kind = iota
	gauge
	observer // timers, histograms and distributions
	set
)

func (k kind) String() string { return [...]string{"counter", "gauge", "timer", "set"}[k] }
