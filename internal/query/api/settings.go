package api

import (
	"context"
	"fmt"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/promql/parser"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/request"
)

// Settings configure the API. The tags are those of package settings. The zero value of a field
// means its default, unless zero is a value of its own.
type Settings struct {
	// LookbackDelta is the maximum age of a series' latest sample in /federate. Queries use the
	// engine's lookback.
	LookbackDelta time.Duration `kong:"-" name:"query.lookback-delta" default:"5m" min:"1ms"`

	// QueryTimeout and Cost are limits of the engine, which parameters of queries may only lower.
	QueryTimeout time.Duration      `kong:"-"`
	Cost         request.CostLimits `kong:"-"`

	Expressions expression.Limits `embed:""`

	RemoteReadSampleLimit int `name:"storage.remote.read-sample-limit" default:"50000000" min:"0" help:"Samples of one remote read that is not streamed. 0 means no limit." when:"Raise it for clients that cannot stream."`
	RemoteReadConcurrency int `name:"storage.remote.read-concurrent-limit" default:"10" min:"1" help:"Remote reads that run at once. A tenant has at most half of them, or one." when:"Raise it if remote reads wait and memory is free."`
	RemoteReadFrameBytes  int `name:"storage.remote.read-max-bytes-in-frame" type:"bytes" default:"1MiB" min:"1" help:"Size at which a frame of a streamed remote read is sent." when:"Rarely."`

	MaxTenants int `name:"tenant-federation.max-tenants" default:"16" min:"1" help:"Tenants from which one query may read, as a|b in the header X-Scope-OrgID. 1 allows no such queries." when:"Raise it for dashboards over many tenants, set 1 if a proxy vouches for the header and may be passed such values by its clients."`

	WriteTimeout time.Duration `name:"web.write-timeout" default:"30s" above:"0" help:"Longest time that a client may take for 64 KiB of an answer." when:"Raise it for clients on slow links."`
	CORSOrigin   string        `name:"web.cors.origin" placeholder:"REGEX" help:"Anchored regular expression of the origins whose pages may read answers. Default: none." when:"Set it if a web page of another origin queries this server."`
	MaxBodyBytes int64         `name:"web.max-body-bytes" type:"bytes" default:"10MiB" min:"1" help:"Largest body of an API request. A form beyond 10 MiB is refused in any case." when:"Lower it if clients are hostile."`

	// Parser is the PromQL dialect. It must be the one of the Backend's engine.
	Parser parser.Options `kong:"-"`

	// Flags are the process's command-line flags, for /api/v1/status/flags.
	Flags map[string]string `kong:"-"`
	// ConfigYAML is the effective configuration, for /api/v1/status/config.
	ConfigYAML string `kong:"-"`
	// Monitoring is what the process scrapes and evaluates, and whom it notifies; nil: nothing.
	Monitoring Monitoring `kong:"-"`
	// Rules returns the rule groups of the tenant of ctx, ascending by file and name, to show them
	// instead of Monitoring's. Their rules are v1.AlertingRule and v1.RecordingRule. The API changes
	// the groups.
	Rules func(ctx context.Context) ([]*v1.RuleGroup, error) `kong:"-"`
	// RulesURL is where another process shows and changes rules, to which this one refers; "":
	// nowhere.
	RulesURL string `kong:"-"`
	// GlobalURLs is what the URLs of targets and rules on this machine become for other machines.
	// Without it, upstream's API reports an error for each such target.
	GlobalURLs v1.GlobalURLOptions `kong:"-"`
	// StorageRetention is how long samples are kept, as text for /api/v1/status/runtimeinfo.
	StorageRetention string `kong:"-" default:"unlimited"`
	// Features are further features of the process for /api/v1/features: category → feature →
	// enabled.
	Features map[string]map[string]bool `kong:"-"`
	// Build identifies the build of Promlake for /api/v1/status/buildinfo.
	Build telemetry.Build `kong:"-"`
	// Ruler means that the process serves the API for the rules of tenants: buildinfo has Mimir's
	// field for it, and an application unless that is "".
	Ruler       bool   `kong:"-"`
	Application string `kong:"-"`
}

// Complete returns s with defaults in place of zero values, or an error that names the invalid
// flags.
func (s Settings) Complete() (Settings, error) {
	settings.Fill(&s)
	if err := settings.Check(s); err != nil {
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
