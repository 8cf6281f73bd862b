// Package load sends the traffic of a fleet of virtual hosts to an endpoint of remote_write or
// another protocol and accounts for its costs.
package load

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/promlake/promlake/tests/bench/wire"
)

// ErrSettings reports invalid settings.
var ErrSettings = errors.New("invalid load settings")

const (
	// MaxBatch is the largest number of samples in a request.
	MaxBatch = 1_000_000
	// MaxConcurrency is the largest number of senders.
	MaxConcurrency = 1024
	// assumedRate is the rate in samples/s by which the first timestamp of a run without a rate is
	// chosen. A faster run ends in the future; Start avoids that.
	assumedRate = 2_000_000
	// churnPeriod is the sample time after which the next hosts are replaced.
	churnPeriod = 10 * time.Minute
)

// Settings of a load. The zero value of a field means its default.
type Settings struct {
	URL string // of the endpoint; no default
	// the server's process; 0 = not on this machine: its usage is not reported
	PID         int
	Protocol    wire.Version  // default V1
	Batch       int           // samples in a request, default 2000
	Concurrency int           // senders, each with its own share of the series, default 4
	Rate        float64       // samples/s over all senders, 0 = as fast as the server answers
	Duration    time.Duration // no request begins later, default 60s
	// number of scrapes of every host after which the run stops, 0 = only Duration stops
	Rounds   int
	Interval time.Duration // between two scrapes in sample time, whole ms, default 15s
	// sample time of the first scrape; default: so that the run ends at now, or before now without
	// a Rate (see assumedRate)
	Start   time.Time
	Settle  time.Duration // how long after the last answer the server's work still counts
	Timeout time.Duration // of a request, default 30s
	// share of the hosts that new ones replace in every churnPeriod of sample time, 0 to 1
	Churn   float64
	Headers map[string]string // further request headers, such as the tenant
}

// complete returns s with its defaults, for a run over the given number of series that begins now,
// or ErrSettings.
func (s Settings) complete(series int, now time.Time) (Settings, error) {
	setDefault(&s.Protocol, wire.V1)
	setDefault(&s.Batch, 2000)
	setDefault(&s.Concurrency, 4)
	setDefault(&s.Duration, time.Minute)
	setDefault(&s.Interval, 15*time.Second)
	setDefault(&s.Timeout, 30*time.Second)
	if s.Start.IsZero() {
		s.Start = now.Add(-s.span(series)).Truncate(s.Interval)
	}
	return s, s.validate()
}

// span returns the sample time that the run covers at its rate, or covers at most without a rate.
func (s Settings) span(series int) time.Duration {
	rate := s.Rate
	if rate <= 0 {
		rate = assumedRate
	}
	rounds := s.Duration.Seconds() * rate / float64(series)
	if s.Rounds > 0 {
		rounds = min(rounds, float64(s.Rounds))
	}
	return time.Duration((rounds + 1) * float64(s.Interval))
}

func (s Settings) validate() error {
	u, err := url.Parse(s.URL)
	if err != nil {
		return fmt.Errorf("%w: URL: %w", ErrSettings, err)
	}
	for _, rule := range []struct {
		ok   bool
		what string
	}{
		{s.Protocol == wire.Graphite || u.Scheme == "http" || u.Scheme == "https", fmt.Sprintf("URL %q: want http or https", s.URL)},
		{s.Protocol != wire.Graphite || u.Scheme == "tcp", fmt.Sprintf("URL %q: want tcp", s.URL)},
		{s.PID >= 0, fmt.Sprintf("pid %d: want a process or 0", s.PID)},
		{s.Protocol.Valid(), s.Protocol.String()},
		{s.Batch >= 1 && s.Batch <= MaxBatch, fmt.Sprintf("batch %d: want 1 to %d samples", s.Batch, MaxBatch)},
		{s.Concurrency >= 1 && s.Concurrency <= MaxConcurrency, fmt.Sprintf("concurrency %d: want 1 to %d", s.Concurrency, MaxConcurrency)},
		{s.Rate >= 0, fmt.Sprintf("rate %g: want samples/s or 0", s.Rate)},
		{s.Duration > 0, fmt.Sprintf("duration %s: want more than 0", s.Duration)},
		{s.Rounds >= 0, fmt.Sprintf("rounds %d: want 0 or more", s.Rounds)},
		{s.Interval >= time.Millisecond && s.Interval%time.Millisecond == 0, fmt.Sprintf("interval %s: want whole milliseconds", s.Interval)},
		{s.Settle >= 0, fmt.Sprintf("settle %s: want 0 or more", s.Settle)},
		{s.Churn >= 0 && s.Churn <= 1, fmt.Sprintf("churn %g: want a share from 0 to 1", s.Churn)},
		{s.Timeout > 0, fmt.Sprintf("timeout %s: want more than 0", s.Timeout)},
	} {
		if !rule.ok {
			return fmt.Errorf("%w: %s", ErrSettings, rule.what)
		}
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
