package cost

import (
	"errors"
	"fmt"
	"time"
)

// Mode is how requests become segments.
type Mode string

// The modes of ingest, with the values of --ingest.mode.
const (
	Buffered Mode = "buffered" // through a queue, in batches of messages
	Direct   Mode = "direct"   // one object per request
	Grouped  Mode = "grouped"  // concurrent requests in one object, on Managed Instances
)

// Modes lists the modes in the order of presentation.
var Modes = []Mode{Buffered, Direct, Grouped}

// Entry is the HTTP entry to the ingest function.
type Entry string

// The entries. Queries always use the HTTP API.
const (
	HTTPAPI     Entry = "http-api"
	FunctionURL Entry = "function-url" // no charge per request; not in mode Grouped
)

// Month is the billing month.
const Month = 30 * day

const day = 24 * time.Hour

// Load is the samples and queries of a month, and the configuration of the stack. The tags are
// those of promlake cost.
type Load struct {
	Series    float64       `name:"series" help:"Series that are written at a time."`
	Scrape    time.Duration `name:"scrape" help:"Time between two samples of a series."`
	Retention time.Duration `name:"retention" type:"period" help:"How long samples are kept."`
	Churn     float64       `name:"churn" help:"Share of the series that others replace every day."`
	Tenants   int           `name:"tenants" help:"Tenants that share the series."` // evenly

	Senders        int           `name:"senders" help:"Prometheus servers that send. 0: one for every 100,000 series."` // they share the series evenly
	SamplesPerSend float64       `name:"samples-per-send" help:"The senders' max_samples_per_send."`
	SendDeadline   time.Duration `name:"send-deadline" help:"The senders' batch_send_deadline."` // samples are sent after this time even if there are few

	Mode         Mode       `name:"mode" enum:"buffered,direct,grouped" required:"" help:"Mode of ingestion: ${enum}."`
	WriteThrough Entry      `name:"write-through" enum:"http-api,function-url" required:"" help:"What senders write to: ${enum}. The second takes no money for requests."`
	Arch         string     `name:"arch" enum:"arm64,x86_64" required:"" help:"Processors of the functions: ${enum}."`
	Region       string     `name:"region" help:"Region whose prices count."`
	Queue        QueueBatch `embed:""`
	KMS          bool       `name:"kms" help:"The stack has a key of KMS of its own (parameter kms-key)."`
	Replica      bool       `name:"replica" help:"A function keeps a replica in another region (parameter replica-bucket)."`
	SystemLogs   string     `name:"system-log-level" enum:"warn,info" required:"" help:"Lambda's own log lines: ${enum}. The second has two of each invocation."`

	QueriesPerDay   float64 `name:"queries-per-day" help:"PromQL queries a day."`
	SamplesPerQuery float64 `name:"samples-per-query" help:"Samples that a query reads."`
	BytesPerAnswer  float64 `name:"bytes-per-answer" help:"Bytes of an answer that leave AWS."`

	Rules         float64 `name:"rules" help:"Rules of tenants that a function evaluates every minute."`
	RulesPerGroup float64 `name:"rules-per-group" help:"Rules of a group. Each group has a state, which every evaluation puts."`

	Memory Memory `embed:"" prefix:"memory."`
}

// QueueBatch is how the event source of the write queue forms batches.
type QueueBatch struct {
	Messages int           `name:"batch" help:"Messages that the flush function gets at once, at most."`
	Window   time.Duration `name:"batch-window" help:"Time for which messages are collected for it."`
}

// Memory is the memory of the functions in MiB. It determines their processor time: 1,769 MiB are
// one vCPU.
type Memory struct {
	Ingest  int `name:"ingest" help:"Memory of the ingest function, MiB."`
	Flush   int `name:"flush" help:"Memory of the flush function, MiB."`
	Plan    int `name:"plan" help:"Memory of the plan function, MiB."`
	Compact int `name:"compact" help:"Memory of the compact function, MiB."`
	Query   int `name:"query" help:"Memory of the query function, MiB."`
	Rules   int `name:"rules" help:"Memory of the function that evaluates rules, MiB."`
}

// DefaultLoad is a million series, scraped and sent with Prometheus' defaults except for
// max_samples_per_send, on the stack of infra/serverless.yml with its defaults.
func DefaultLoad() Load {
	return Load{
		Series: 1e6, Scrape: 15 * time.Second, Retention: 90 * day, Tenants: 1,
		Senders: 10, SamplesPerSend: 10_000, SendDeadline: 5 * time.Second,
		Mode: Buffered, WriteThrough: HTTPAPI, Arch: "arm64", Queue: QueueBatch{Messages: 10_000, Window: 10 * time.Second}, SystemLogs: "warn",
		QueriesPerDay: 10_000, SamplesPerQuery: 1e6, BytesPerAnswer: 20_000, RulesPerGroup: 20,
		Memory: Memory{Ingest: 512, Flush: 1024, Plan: 512, Compact: 2048, Query: 2048, Rules: 1769},
		Region: "us-east-1",
	}
}

// maxRequestBytes is the maximum size of a body that a function receives: an event of 6 MB, of
// which base64 takes a quarter.
const maxRequestBytes = 4.5e6

// Check returns an error that names every invalid value.
func (l *Load) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, v := range []struct {
		name            string
		value, from, to float64
	}{
		{"series", l.Series, 0, 1e10}, {"churn", l.Churn, 0, 100}, {"samples-per-send", l.SamplesPerSend, 1, 1e6},
		{"queries-per-day", l.QueriesPerDay, 0, 1e9}, {"samples-per-query", l.SamplesPerQuery, 0, 1e12}, {"bytes-per-answer", l.BytesPerAnswer, 0, 1e9},
		{"rules", l.Rules, 0, 1e7}, {"rules-per-group", l.RulesPerGroup, 1, 1e4}, {"tenants", float64(l.Tenants), 1, 1e5}, {"senders", float64(l.Senders), 1, 1e6}, {"messages of a batch", float64(l.Queue.Messages), 1, 10_000},
	} {
		if !(v.value >= v.from && v.value <= v.to) { // false for NaN, too
			bad("%s: want %g to %g, got %g", v.name, v.from, v.to, v.value)
		}
	}
	for _, d := range []struct {
		name            string
		value, from, to time.Duration
	}{
		{"scrape", l.Scrape, time.Second, day}, {"retention", l.Retention, day, 100 * 365 * day},
		{"send-deadline", l.SendDeadline, time.Second, time.Hour}, {"batch window", l.Queue.Window, 0, 5 * time.Minute},
	} {
		if d.value < d.from || d.value > d.to {
			bad("%s: want %s to %s, got %s", d.name, d.from, d.to, d.value)
		}
	}
	for _, m := range []struct {
		name string
		mib  int
	}{{"ingest", l.Memory.Ingest}, {"flush", l.Memory.Flush}, {"plan", l.Memory.Plan}, {"compact", l.Memory.Compact}, {"query", l.Memory.Query}, {"rules", l.Memory.Rules}} {
		if m.mib < 128 || m.mib > 10_240 {
			bad("memory of %s: want 128 to 10240 MiB, got %d", m.name, m.mib)
		}
	}
	if l.Mode != Buffered && l.Mode != Direct && l.Mode != Grouped {
		bad("mode: want buffered, direct or grouped, got %q", l.Mode)
	}
	if l.WriteThrough != HTTPAPI && l.WriteThrough != FunctionURL {
		bad("write-through: want http-api or function-url, got %q", l.WriteThrough)
	}
	if l.WriteThrough == FunctionURL && l.Mode == Grouped {
		bad("write-through: want http-api in mode grouped, since Managed Instances have no Function URL, got %q", l.WriteThrough)
	}
	if l.SystemLogs != "warn" && l.SystemLogs != "info" {
		bad("system-log-level: want warn or info, got %q", l.SystemLogs)
	}
	if l.Arch != "arm64" && l.Arch != "x86_64" {
		bad("arch: want arm64 or x86_64, got %q", l.Arch)
	}
	return errors.Join(errs...)
}

// Samples returns the number of samples per month.
func (l *Load) Samples() float64 { return l.Series * float64(Month) / float64(l.Scrape) }

// Sent returns the number of samples per request: the setting, or the samples that a sender has by
// its deadline if those are fewer.
func (l *Load) Sent() float64 {
	perSender := l.Series / float64(l.Senders) * float64(l.SendDeadline) / float64(l.Scrape)
	return max(1, min(l.SamplesPerSend, perSender))
}

// deadlineFor returns the batch_send_deadline after which a sender has RecommendedSend samples, in
// whole scrape intervals and at most a minute.
func deadlineFor(l *Load) time.Duration {
	if l.Series == 0 {
		return l.SendDeadline
	}
	need := time.Duration(RecommendedSend / (l.Series / float64(l.Senders)) * float64(l.Scrape))
	whole := (min(need, time.Minute) + l.Scrape - 1) / l.Scrape * l.Scrape
	if need <= l.SendDeadline {
		return l.SendDeadline
	}
	return max(l.SendDeadline, min(whole, time.Minute))
}
