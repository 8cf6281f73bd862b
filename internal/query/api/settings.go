package api

import (
	"fmt"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/expression"
)

// Settings configure the API. A zero field means its default.
type Settings struct {
	// LookbackDelta is the maximum age of a series' latest sample in /federate. Default 5m. Queries
	// use the engine's lookback.
	LookbackDelta time.Duration
	// MaxBodyBytes bounds a request's body. Default 10 MiB, which is also the most of a form that
	// net/http reads.
	MaxBodyBytes int64
	// Expressions limits the texts of query and match[] before they are parsed. Defaults: those of
	// expression.Limits.
	Expressions expression.Limits
	// RemoteReadSampleLimit bounds the samples of one remote read query that is answered with
	// samples; streamed chunks have no limit. Default 50,000,000; negative means none.
	RemoteReadSampleLimit int
	// RemoteReadConcurrency bounds the remote reads that run at once. One tenant may run half of
	// them, and at least one. Default 10.
	RemoteReadConcurrency int
	// RemoteReadFrameBytes is the size of a frame of streamed chunks. Default 1 MiB.
	RemoteReadFrameBytes int
	// WriteTimeout is the time within which a client must receive each 64 KiB of an answer. Default
	// 30 seconds.
	WriteTimeout time.Duration
	// CORSOrigin is an anchored regular expression of the origins whose pages may read responses.
	// Default: none.
	CORSOrigin string
	// Parser is the PromQL dialect. It must be the one of the Backend's engine.
	Parser parser.Options

	// Flags are the process's command-line flags, for /api/v1/status/flags.
	Flags map[string]string
	// ConfigYAML is the effective configuration, for /api/v1/status/config.
	ConfigYAML string
	// StorageRetention is how long samples are kept, as text for /api/v1/status/runtimeinfo.
	// Default "unlimited".
	StorageRetention string
	// Features are further features of the process for /api/v1/features: category → feature →
	// enabled.
	Features map[string]map[string]bool
	// Build identifies the build of Promlake for /api/v1/status/buildinfo.
	Build Build
}

// Build describes the running program.
type Build struct {
	Revision string // VCS commit
	Branch   string // VCS branch
	User     string // who built it
	Date     string // when it was built
}

// DefaultSettings returns the defaults.
func DefaultSettings() Settings {
	return Settings{
		LookbackDelta:         5 * time.Minute,
		MaxBodyBytes:          10 << 20,
		RemoteReadSampleLimit: 50_000_000,
		RemoteReadConcurrency: 10,
		RemoteReadFrameBytes:  1 << 20,
		WriteTimeout:          30 * time.Second,
		StorageRetention:      "unlimited",
		Expressions:           expression.Limits{}.WithDefaults(),
	}
}

// Complete returns s with defaults in place of zero values, or an error that names the first
// invalid field.
func (s Settings) Complete() (Settings, error) {
	d := DefaultSettings()
	s.LookbackDelta = orDefault(s.LookbackDelta, d.LookbackDelta)
	s.MaxBodyBytes = orDefault(s.MaxBodyBytes, d.MaxBodyBytes)
	s.RemoteReadSampleLimit = orDefault(s.RemoteReadSampleLimit, d.RemoteReadSampleLimit)
	s.RemoteReadConcurrency = orDefault(s.RemoteReadConcurrency, d.RemoteReadConcurrency)
	s.RemoteReadFrameBytes = orDefault(s.RemoteReadFrameBytes, d.RemoteReadFrameBytes)
	s.WriteTimeout = orDefault(s.WriteTimeout, d.WriteTimeout)
	s.StorageRetention = orDefault(s.StorageRetention, d.StorageRetention)
	s.Expressions = s.Expressions.WithDefaults()

	for _, f := range []struct {
		name string
		bad  bool
		got  any
	}{
		{"lookback delta", s.LookbackDelta < time.Millisecond, s.LookbackDelta},
		{"max body bytes", s.MaxBodyBytes < 0, s.MaxBodyBytes},
		{"write timeout", s.WriteTimeout < 0, s.WriteTimeout},
		{"remote read concurrency", s.RemoteReadConcurrency < 0, s.RemoteReadConcurrency},
		{"remote read frame bytes", s.RemoteReadFrameBytes < 0, s.RemoteReadFrameBytes},
	} {
		if f.bad {
			return s, fmt.Errorf("validate api settings: %s must be positive, got %v", f.name, f.got)
		}
	}
	if err := s.Expressions.Validate(); err != nil {
		return s, fmt.Errorf("validate api settings: %w", err)
	}
	if _, err := s.corsOrigin(); err != nil {
		return s, fmt.Errorf("validate api settings: %w", err)
	}
	return s, nil
}

// corsOrigin compiles CORSOrigin as upstream compiles its flag.
func (s Settings) corsOrigin() (*regexp.Regexp, error) {
	re, err := relabel.NewRegexp(s.CORSOrigin)
	if err != nil {
		return nil, fmt.Errorf("parse CORS origin %q: %w", s.CORSOrigin, err)
	}
	return re.Regexp, nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
