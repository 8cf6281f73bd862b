package ingestapp

import (
	"time"

	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/lambda"
	"github.com/promlake/promlake/internal/remotewrite"
)

// Flags are the ingest stage's command-line flags. Limits of series are named as Mimir names them.
type Flags struct {
	Mode     string `name:"ingest.mode" enum:"auto,grouped,direct,buffered" required:"" help:"How samples reach the store, one of ${enum}: requests share a segment, have one each, or go through a queue. auto is grouped in a process that takes many requests at once, else buffered if there is a queue, else direct."`
	QueueURL string `name:"ingest.queue-url" placeholder:"URL" help:"SQS queue of mode buffered."`

	FlushInterval    time.Duration `name:"ingest.flush-interval" help:"Least time between two writes of a tenant, unless samples press; 0 is none on a local directory and 1s where a write costs money."`
	FlushSamples     int           `name:"ingest.flush-samples" help:"Samples that make a write due at once."`
	FlushTimeout     time.Duration `name:"ingest.flush-timeout" help:"Longest time that a write may take."`
	SettleDelay      time.Duration `name:"ingest.settle-delay" help:"Must equal the compactor's --compactor.settle-delay and exceed --ingest.flush-timeout."`
	MaxMessages      int           `name:"ingest.max-messages" help:"Mode buffered: messages on the queue that one request may become."`
	ConsumeSamples   int           `name:"ingest.consume-samples" help:"Samples of a tenant that a batch of messages gathers in memory before they are written."`
	MaxRequestBytes  int64         `name:"ingest.max-request-bytes" type:"bytes" help:"Largest remote_write body as sent."`
	MaxDecodedBytes  int64         `name:"ingest.max-decoded-bytes" type:"bytes" help:"Largest remote_write body after decompression."`
	MaxInflightBytes int64         `name:"ingest.max-inflight-bytes" type:"bytes" help:"Memory for all requests from their first byte until they are durable. A tenant with several requests in flight takes at most two thirds of it."`
	InflightWait     time.Duration `name:"ingest.inflight-wait" help:"How long a request waits for its share of that memory."`
	MaxTenants       int           `name:"ingest.max-tenants" help:"Tenants that may be writing at once."`
	TenantIdle       time.Duration `name:"ingest.tenant-idle" help:"A tenant that wrote nothing for so long is forgotten by this process; its data stays."`
	MaxSeriesBytes   int64         `name:"ingest.max-series-bytes" type:"bytes" help:"Memory for one tenant's known label sets; beyond it they are learned anew."`
	MaxKnownBytes    int64         `name:"ingest.max-known-bytes" type:"bytes" help:"Memory for the known label sets of all tenants; beyond it tenants with more than an equal share learn theirs anew."`
	MaxWindows       int           `name:"ingest.max-windows-per-request" help:"Windows of 2h that the samples of one request may lie in; each costs an object."`
	BodyGrace        time.Duration `name:"ingest.body-grace" help:"A request's body may arrive at any rate for this time."`
	MinBodyRate      int64         `name:"ingest.min-body-rate" type:"bytes" help:"Bytes a second at which a body must arrive after --ingest.body-grace."`

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
		Mode:             modeAuto,
		SettleDelay:      s.SettleDelay,
		MaxMessages:      s.MaxMessages,
		ConsumeSamples:   s.ConsumeSamples,
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
		MaxKnownBytes:    s.MaxKnownBytes,
		MaxWindows:       s.MaxWindows,
		BodyGrace:        s.BodyGrace,
		MinBodyRate:      s.MinBodyRate,

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
		Mode:             chooseMode(f.Mode, f.QueueURL != "", lambda.Running(), lambda.Concurrency()),
		QueueURL:         f.QueueURL,
		SettleDelay:      f.SettleDelay,
		MaxMessages:      f.MaxMessages,
		ConsumeSamples:   f.ConsumeSamples,
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
		MaxKnownBytes:    f.MaxKnownBytes,
		MaxWindows:       f.MaxWindows,
		BodyGrace:        f.BodyGrace,
		MinBodyRate:      f.MinBodyRate,
		Limits: remotewrite.Limits{
			MaxLabelNames:       f.MaxLabelNames,
			MaxLabelNameBytes:   f.MaxLabelNameBytes,
			MaxLabelValueBytes:  f.MaxLabelValueBytes,
			CreationGracePeriod: f.CreationGracePeriod,
			LegacyNames:         f.NameScheme == schemeName(true),
		},
	}
}

const modeAuto = "auto"

// chooseMode resolves auto: only a process that takes several requests at once can let them share a segment.
func chooseMode(mode string, queue, function bool, concurrency int) ingest.Mode {
	switch {
	case mode != modeAuto:
		return ingest.Mode(mode)
	case !function || concurrency > 1:
		return ingest.Grouped
	case queue:
		return ingest.Buffered
	}
	return ingest.Direct
}

func schemeName(legacy bool) string {
	if legacy {
		return "legacy"
	}
	return "utf8"
}
