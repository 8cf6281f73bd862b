package ingestapp

import (
	"time"

	"github.com/promlake/promlake/internal/ingest"
)

// Flags are the ingest stage's command-line flags. Limits of series are named as Mimir names them.
type Flags struct {
	FlushInterval    time.Duration `name:"ingest.flush-interval" help:"Least time between two writes of a tenant, unless samples press; 0 is none on a local directory and 1s where a write costs money."`
	FlushSamples     int           `name:"ingest.flush-samples" help:"Samples that make a write due at once."`
	FlushTimeout     time.Duration `name:"ingest.flush-timeout" help:"Longest time that a write may take."`
	MaxRequestBytes  int64         `name:"ingest.max-request-bytes" type:"bytes" help:"Largest remote_write body as sent."`
	MaxDecodedBytes  int64         `name:"ingest.max-decoded-bytes" type:"bytes" help:"Largest remote_write body after decompression."`
	MaxInflightBytes int64         `name:"ingest.max-inflight-bytes" type:"bytes" help:"Memory for all requests that are being decoded at once."`
	InflightWait     time.Duration `name:"ingest.inflight-wait" help:"How long a request waits for its share of that memory."`
	MaxTenants       int           `name:"ingest.max-tenants" help:"Tenants that may be writing at once."`
	TenantIdle       time.Duration `name:"ingest.tenant-idle" help:"A tenant that wrote nothing for so long is forgotten by this process; its data stays."`
	MaxSeriesBytes   int64         `name:"ingest.max-series-bytes" type:"bytes" help:"Memory for one tenant's known label sets; beyond it they are learned anew."`

	MaxLabelNames       int           `name:"validation.max-label-names-per-series" help:"Labels of one series, its name included."`
	MaxLabelNameBytes   int           `name:"validation.max-length-label-name" help:"Longest label name in bytes."`
	MaxLabelValueBytes  int           `name:"validation.max-length-label-value" help:"Longest label value in bytes."`
	CreationGracePeriod time.Duration `name:"validation.create-grace-period" help:"How far in the future a sample may lie."`
	NameScheme          string        `name:"validation.name-validation-scheme" enum:"utf8,legacy" required:"" help:"Which metric and label names are valid: ${enum}."`
}

// NewFlags returns the flags at their defaults.
func NewFlags() Flags {
	s := ingest.DefaultSettings()
	return Flags{
		FlushInterval:    s.FlushInterval,
		FlushSamples:     s.FlushSamples,
		FlushTimeout:     s.FlushTimeout,
		MaxRequestBytes:  s.MaxRequestBytes,
		MaxDecodedBytes:  s.MaxDecodedBytes,
		MaxInflightBytes: s.MaxInflightBytes,
		InflightWait:     s.InflightWait,
		MaxTenants:       s.MaxTenants,
		TenantIdle:       s.TenantIdle,
		MaxSeriesBytes:   s.MaxSeriesBytes,

		MaxLabelNames:       s.Limits.MaxLabelNames,
		MaxLabelNameBytes:   s.Limits.MaxLabelNameBytes,
		MaxLabelValueBytes:  s.Limits.MaxLabelValueBytes,
		CreationGracePeriod: s.Limits.CreationGracePeriod,
		NameScheme:          schemeName(s.Limits.LegacyNames),
	}
}

// Settings returns what the flags say.
func (f Flags) Settings() ingest.Settings {
	return ingest.Settings{
		FlushInterval:    f.FlushInterval,
		FlushSamples:     f.FlushSamples,
		FlushTimeout:     f.FlushTimeout,
		MaxRequestBytes:  f.MaxRequestBytes,
		MaxDecodedBytes:  f.MaxDecodedBytes,
		MaxInflightBytes: f.MaxInflightBytes,
		InflightWait:     f.InflightWait,
		MaxTenants:       f.MaxTenants,
		TenantIdle:       f.TenantIdle,
		MaxSeriesBytes:   f.MaxSeriesBytes,
		Limits: ingest.Limits{
			MaxLabelNames:       f.MaxLabelNames,
			MaxLabelNameBytes:   f.MaxLabelNameBytes,
			MaxLabelValueBytes:  f.MaxLabelValueBytes,
			CreationGracePeriod: f.CreationGracePeriod,
			LegacyNames:         f.NameScheme == schemeName(true),
		},
	}
}

func schemeName(legacy bool) string {
	if legacy {
		return "legacy"
	}
	return "utf8"
}
