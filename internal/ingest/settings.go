package ingest

import (
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/senders/lineprotocol"
	"github.com/promlake/promlake/internal/senders/otlp"
	"github.com/promlake/promlake/internal/senders/push"
	"github.com/promlake/promlake/internal/store/objstore"
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
	// Auto leaves the choice to the composition, which knows whether it is a function. New takes it
	// as Grouped.
	Auto Mode = "auto"
)

// Settings is the plain data that an ingest stage runs by. The tags are those of package settings.
type Settings struct {
	Mode     Mode   `name:"ingest.mode" basic:"" default:"auto" enum:"auto,grouped,direct,buffered" help:"How samples reach the store, one of ${enum}: several requests share a segment, each request has its own, or requests go through a queue. auto is grouped where a process serves several requests at once, else buffered if there is a queue, else direct." when:"On Lambda only: see the modes in deploy.md."`
	QueueURL string `name:"ingest.queue-url" placeholder:"URL" help:"URL of the SQS queue of mode buffered. A function that consumes messages gives those that fail back to it, after 1s at first and 5m at last." when:"With mode buffered; the AWS stack sets it."`

	FlushInterval time.Duration `name:"ingest.flush-interval" default:"0" min:"0" help:"Least time between two flushes of a tenant, unless --ingest.flush-samples are waiting. 0 is 1s in a bucket and no wait in a directory." when:"Raise it to pay for fewer PUT requests; writers wait as long for their answer."`
	FlushSamples  int           `name:"ingest.flush-samples" default:"50000" min:"1" help:"Buffered samples of a tenant that start a flush at once." when:"Raise it for fewer and larger segments, lower it to save memory."`
	FlushTimeout  time.Duration `name:"ingest.flush-timeout" default:"30s" above:"0" help:"Longest duration of a flush. Must be less than --ingest.settle-delay." when:"Raise it if flushes time out on a slow store."`
	SettleDelay   time.Duration `name:"ingest.settle-delay" default:"1m" above:"0" help:"Must equal the compactor's --compactor.settle-delay and exceed --ingest.flush-timeout." when:"Only together with --compactor.settle-delay."`

	MaxMessages    int `name:"ingest.max-messages" default:"128" min:"1" help:"Queue messages that one request may become in mode buffered." when:"Raise it if requests are refused for their size in mode buffered."`
	ConsumeSamples int `name:"ingest.consume-samples" default:"500000" min:"1" help:"Samples of a tenant that are gathered from queue messages before they are flushed." when:"Lower it if the flush function runs out of memory."`

	MaxRequestBytes  int64         `name:"ingest.max-request-bytes" type:"bytes" default:"16MiB" min:"1" help:"Largest remote_write body, as sent." when:"Raise it if senders get 413 and cannot send less at once."`
	MaxDecodedBytes  int64         `name:"ingest.max-decoded-bytes" type:"bytes" default:"64MiB" min:"1" help:"Largest remote_write body, decompressed." when:"Together with --ingest.max-request-bytes."`
	MaxInflightBytes int64         `name:"ingest.max-inflight-bytes" type:"bytes" default:"256MiB" min:"1" help:"Memory for all requests from their first byte until they are durable. A tenant with several requests takes at most two thirds of it." when:"Raise it if writers get 503 although memory is free. If not set, at most a quarter of --memory-limit."`
	InflightWait     time.Duration `name:"ingest.inflight-wait" default:"5s" above:"0" help:"Longest wait of a request for its share of --ingest.max-inflight-bytes." when:"Raise it if short bursts of writes get 503."`
	MaxWindows       int           `name:"ingest.max-windows-per-request" default:"100" min:"1" help:"2h windows that the samples of one request may lie in. Each costs an object." when:"Raise it to backfill long ranges."`
	BodyGrace        time.Duration `name:"ingest.body-grace" default:"10s" above:"0" help:"Time during which a request's body may arrive at any rate." when:"Raise it for senders on slow links."`
	MinBodyRate      int64         `name:"ingest.min-body-rate" type:"bytes" default:"8KiB" min:"1" help:"Bytes a second at which a body must arrive after --ingest.body-grace." when:"Lower it for senders on slow links."`
	MaxTenants       int           `name:"ingest.max-tenants" default:"10000" min:"1" help:"Tenants that may write within --ingest.tenant-idle." when:"Raise it if new tenants get 429."`
	TenantIdle       time.Duration `name:"ingest.tenant-idle" default:"10m" above:"0" help:"Time after its last write at which the process forgets a tenant. The tenant's data stays." when:"Lower it if many tenants write rarely and memory is short."`
	MaxSeriesBytes   int64         `name:"ingest.max-series-bytes" type:"bytes" default:"1GiB" min:"1" help:"Memory for one tenant's known label sets. Beyond it they are parsed again." when:"Raise it if one tenant has very many series. If not set, at most an eighth of --memory-limit."`
	MaxKnownBytes    int64         `name:"ingest.max-known-bytes" type:"bytes" default:"1GiB" min:"1" help:"Memory for the known label sets of all tenants. Beyond it tenants above an equal share have theirs parsed again." when:"Raise it if many tenants have many series. If not set, at most an eighth of --memory-limit."`

	Limits  admission.Limits    `embed:""`
	Runtime admission.Settings  `embed:""`
	Lines   lineprotocol.Naming `embed:""`
	OTLP    otlp.Settings       `embed:""`
	Push    push.Settings       `embed:""`
}

// RemoteFlushInterval is the interval between flushes for stores that charge for requests: at $5 a
// million PUTs, a tenant that writes continuously costs at most $13 a month.
const RemoteFlushInterval = time.Second

// DefaultSettings returns the settings for ordinary use.
func DefaultSettings() Settings { return settings.Default[Settings]() }

// Validate reports every setting that makes no sense, by the name of its flag.
func (s *Settings) Validate() error {
	errs := []error{settings.Check(s), s.OTLP.Validate()}
	if s.Limits.NameScheme == remotewrite.LegacyNames && s.OTLP.UTF8() {
		errs = append(errs, fmt.Errorf("otlp.translation-strategy: %s keeps names that validation.name-validation-scheme=legacy refuses, want a strategy with UnderscoreEscaping", s.OTLP.TranslationStrategy))
	}
	if s.Mode == Buffered && s.QueueURL == "" {
		errs = append(errs, errors.New("ingest.mode: buffered wants the URL of a queue in ingest.queue-url"))
	}
	if s.FlushTimeout >= s.SettleDelay {
		errs = append(errs, fmt.Errorf("ingest.flush-timeout: want less than ingest.settle-delay (%s), so that no merge overlooks a segment that is still being written, got %s",
			s.SettleDelay, s.FlushTimeout))
	}
	if s.MaxInflightBytes < s.MaxRequestBytes+s.MaxDecodedBytes {
		errs = append(errs, fmt.Errorf("ingest.max-inflight-bytes: want room for one request, at least ingest.max-request-bytes (%d) + ingest.max-decoded-bytes (%d), got %d",
			s.MaxRequestBytes, s.MaxDecodedBytes, s.MaxInflightBytes))
	}
	return errors.Join(errs...)
}

// minWait is how long a group waits at least for requests that came together lately, however short
// the interval between flushes is. It ends the wait for senders that are gone.
const minWait = 50 * time.Millisecond

// pace returns the pace of groups for a store.
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
