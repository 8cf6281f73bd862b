package cost

import (
	"errors"
	"fmt"
	"time"
)

// Mode is how requests become segments.
type Mode string

// The modes of ingest, as --ingest.mode has them.
const (
	Buffered Mode = "buffered" // through a queue, in batches of messages
	Direct   Mode = "direct"   // one object of each request
	Grouped  Mode = "grouped"  // concurrent requests together, on Managed Instances
)

// Modes lists them in the order in which they are offered.
var Modes = []Mode{Buffered, Direct, Grouped}

// Entry is what stands in front of the ingest function.
type Entry string

// The two ways to it. Queries go through the HTTP API in any case.
const (
	HTTPAPI     Entry = "http-api"
	FunctionURL Entry = "function-url" // takes no money for requests; not in mode Grouped
)

// Entries lists them.
var Entries = []Entry{HTTPAPI, FunctionURL}

// Month is the length of a month in bills.
const Month = 30 * day

const day = 24 * time.Hour

// Load is what is written, kept and asked, and how the stack is set up.
type Load struct {
	Series    float64       // that are written at a time
	Scrape    time.Duration // between two samples of a series
	Retention time.Duration // how long samples are kept
	Churn     float64       // share of the series that are replaced by others every day
	Tenants   int           // among which the series are divided evenly

	Senders        int     // Prometheus servers that send; each has its share of the series
	SamplesPerSend float64 // max_samples_per_send
	// batch_send_deadline: what has waited so long is sent, however little it is
	SendDeadline time.Duration

	Mode         Mode
	WriteThrough Entry
	Arch         string // arm64 or x86_64
	Queue        QueueBatch
	// Lambda's own log lines: warn, those of failures, or info, two of each invocation too
	SystemLogs string

	QueriesPerDay   float64
	SamplesPerQuery float64 // that a query reads
	BytesPerAnswer  float64 // that leave AWS with an answer

	Memory Memory
	Region string
}

// QueueBatch says how messages of the write queue are handed to the flush function.
type QueueBatch struct {
	Messages int           // at most in one invocation
	Window   time.Duration // for which messages are collected
}

// Memory is what the functions have, MiB. Processor time comes with it: 1,769 MiB are one vCPU.
type Memory struct{ Ingest, Flush, Plan, Compact, Query int }

// DefaultLoad is a million series as Prometheus scrapes and sends them by default, but for
// max_samples_per_send, on the stack of infra/serverless.yml with its defaults.
func DefaultLoad() Load {
	return Load{
		Series: 1e6, Scrape: 15 * time.Second, Retention: 90 * day, Tenants: 1,
		Senders: 10, SamplesPerSend: 10_000, SendDeadline: 5 * time.Second,
		Mode: Buffered, WriteThrough: HTTPAPI, Arch: "arm64", Queue: QueueBatch{Messages: 10_000, Window: 10 * time.Second}, SystemLogs: "warn",
		QueriesPerDay: 10_000, SamplesPerQuery: 1e6, BytesPerAnswer: 20_000,
		Memory: Memory{Ingest: 512, Flush: 1024, Plan: 512, Compact: 2048, Query: 2048},
		Region: "us-east-1",
	}
}

// maxRequestBytes is the largest body that a function takes: 6 MB of event, of which a third is
// base64's.
const maxRequestBytes = 4.5e6

// Validate reports every value that makes no sense, by its name.
func (l *Load) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, v := range []struct {
		name            string
		value, from, to float64
	}{
		{"series", l.Series, 0, 1e10}, {"churn", l.Churn, 0, 100}, {"samples-per-send", l.SamplesPerSend, 1, 1e6},
		{"queries-per-day", l.QueriesPerDay, 0, 1e9}, {"samples-per-query", l.SamplesPerQuery, 0, 1e12}, {"bytes-per-answer", l.BytesPerAnswer, 0, 1e9},
		{"tenants", float64(l.Tenants), 1, 1e5}, {"senders", float64(l.Senders), 1, 1e6}, {"messages of a batch", float64(l.Queue.Messages), 1, 10_000},
	} {
		if !(v.value >= v.from && v.value <= v.to) { // NaN is neither
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
	}{{"ingest", l.Memory.Ingest}, {"flush", l.Memory.Flush}, {"plan", l.Memory.Plan}, {"compact", l.Memory.Compact}, {"query", l.Memory.Query}} {
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

// Samples is how many samples a month has.
func (l *Load) Samples() float64 { return l.Series * float64(Month) / float64(l.Scrape) }

// Sent is how many samples a request has: as many as the setting allows, and no more than a sender
// has by its deadline.
func (l *Load) Sent() float64 {
	perSender := l.Series / float64(l.Senders) * float64(l.SendDeadline) / float64(l.Scrape)
	return max(1, min(l.SamplesPerSend, perSender))
}

// deadlineFor is the batch_send_deadline by which a sender has RecommendedSend samples, in whole
// scrape intervals and at most a minute.
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
