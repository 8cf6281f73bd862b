package ingest

import (
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/remotewrite"
)

// Mode is the way from a request to the store.
type Mode string

// The modes.
const (
	// Grouped gathers concurrent requests and writes one segment for them all. It is for processes
	// that take many requests at once.
	Grouped Mode = "grouped"
	// Direct writes a segment for each request.
	Direct Mode = "direct"
	// Buffered puts requests on a queue, from which Consume takes many at once.
	Buffered Mode = "buffered"
)

// Settings is the plain data that an ingest stage runs by.
type Settings struct {
	Mode     Mode
	QueueURL string // of the queue that mode Buffered sends to; who makes the stage opens it

	// FlushInterval is the least time between two flushes of a tenant, unless samples press. 0 is none for a local directory, where an
	// object costs nothing, and RemoteFlushInterval for other stores.
	FlushInterval time.Duration
	FlushSamples  int           // samples that make a flush due at once
	FlushTimeout  time.Duration // longest time that a flush may take
	// SettleDelay is the compactor's: a segment must be listed so soon after the store began to
	// take it. It must be longer than FlushTimeout.
	SettleDelay time.Duration

	MaxMessages    int // messages that one request may become in mode Buffered
	ConsumeSamples int // samples of a tenant that are gathered from messages before they are flushed

	MaxRequestBytes  int64         // a request's body as sent
	MaxDecodedBytes  int64         // a request's body after decompression
	MaxInflightBytes int64         // memory for all requests from their first byte until they are durable
	InflightWait     time.Duration // how long a request waits for its share of MaxInflightBytes
	MaxWindows       int           // 2h windows that the samples of one request may lie in
	BodyGrace        time.Duration // a body may arrive at any rate for so long
	MinBodyRate      int64         // bytes/s at which it must arrive afterwards
	MaxTenants       int           // tenants that wrote within TenantIdle
	TenantIdle       time.Duration // a tenant that wrote nothing for so long is forgotten (its data is in the store)
	MaxSeriesBytes   int64         // memory for one tenant's known label sets; beyond it they are learned anew
	MaxKnownBytes    int64         // memory for the known label sets of all tenants; beyond it tenants with more than an equal share learn anew

	Limits remotewrite.Limits
}

// RemoteFlushInterval is the interval between flushes for stores that charge for requests: at $5 a million PUTs, a tenant that writes
// without pause costs at most $13 a month.
const RemoteFlushInterval = time.Second

// DefaultSettings returns the settings for ordinary use.
func DefaultSettings() Settings {
	return Settings{
		Mode:             Grouped,
		FlushSamples:     50_000,
		FlushTimeout:     30 * time.Second,
		SettleDelay:      time.Minute,
		MaxMessages:      128,
		ConsumeSamples:   500_000,
		MaxRequestBytes:  16 << 20,
		MaxDecodedBytes:  64 << 20,
		MaxInflightBytes: 256 << 20,
		InflightWait:     5 * time.Second,
		MaxWindows:       100,
		BodyGrace:        10 * time.Second,
		MinBodyRate:      8 << 10,
		MaxTenants:       10_000,
		TenantIdle:       10 * time.Minute,
		MaxSeriesBytes:   256 << 20,
		MaxKnownBytes:    512 << 20,
		Limits:           remotewrite.DefaultLimits(),
	}
}

// Validate reports every setting that makes no sense.
func (s *Settings) Validate() error {
	var errs []error
	positive := func(name string, v int64) {
		if v <= 0 {
			errs = append(errs, fmt.Errorf("%s must be positive, is %d", name, v))
		}
	}
	notNegative := func(name string, d time.Duration) {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative, is %s", name, d))
		}
	}
	errs = append(errs, s.validateMode())
	notNegative("flush interval", s.FlushInterval)
	positive("max messages", int64(s.MaxMessages))
	positive("consume samples", int64(s.ConsumeSamples))
	notNegative("creation grace period", s.Limits.CreationGracePeriod)
	positive("flush samples", int64(s.FlushSamples))
	positive("flush timeout", int64(s.FlushTimeout))
	positive("max request bytes", s.MaxRequestBytes)
	positive("max decoded bytes", s.MaxDecodedBytes)
	positive("inflight wait", int64(s.InflightWait))
	positive("max windows per request", int64(s.MaxWindows))
	positive("body grace", int64(s.BodyGrace))
	positive("min body rate", s.MinBodyRate)
	positive("max tenants", int64(s.MaxTenants))
	positive("tenant idle time", int64(s.TenantIdle))
	positive("max series bytes", s.MaxSeriesBytes)
	positive("max known bytes", s.MaxKnownBytes)
	positive("max label names", int64(s.Limits.MaxLabelNames))
	positive("max label name length", int64(s.Limits.MaxLabelNameBytes))
	positive("max label value length", int64(s.Limits.MaxLabelValueBytes))
	if s.MaxInflightBytes < s.MaxRequestBytes+s.MaxDecodedBytes {
		errs = append(errs, fmt.Errorf("max inflight bytes (%d) must hold one request: max request bytes (%d) + max decoded bytes (%d)",
			s.MaxInflightBytes, s.MaxRequestBytes, s.MaxDecodedBytes))
	}
	return errors.Join(errs...)
}

func (s *Settings) validateMode() error {
	var errs []error
	switch s.Mode {
	case Grouped, Direct:
	case Buffered:
		if s.QueueURL == "" {
			errs = append(errs, errors.New("mode buffered wants the URL of a queue (queue-url)"))
		}
	default:
		errs = append(errs, fmt.Errorf("mode must be %s, %s or %s, is %q", Grouped, Direct, Buffered, s.Mode))
	}
	if s.FlushTimeout >= s.SettleDelay {
		errs = append(errs, fmt.Errorf("flush timeout (%s) must be shorter than the compactor's settle delay (%s): a merge must not overlook a segment that is still being written",
			s.FlushTimeout, s.SettleDelay))
	}
	return errors.Join(errs...)
}

// minWait is how long a group waits at least for requests that came together lately, however short
// the interval between flushes is. It ends the wait for senders that are gone.
const minWait = 50 * time.Millisecond

// pace says when groups for a store are due.
func (s *Settings) pace(store objstore.Store) group.Pace {
	gap := s.FlushInterval
	if _, local := store.(objstore.Local); gap == 0 && !local {
		gap = RemoteFlushInterval
	}
	return group.Pace{Wait: max(gap, minWait), Gap: gap, MaxSamples: s.FlushSamples}
}

// body are the limits of bodies.
func (s *Settings) body() body.Limits {
	return body.Limits{
		MaxRequestBytes: s.MaxRequestBytes, MaxDecodedBytes: s.MaxDecodedBytes, MaxInflightBytes: s.MaxInflightBytes,
		InflightWait: s.InflightWait, Grace: s.BodyGrace, MinRate: s.MinBodyRate,
	}
}
