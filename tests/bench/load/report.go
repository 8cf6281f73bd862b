package load

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/promlake/promlake/tests/bench/fleet"
)

// costs are the differences of the clocks over a run.
type costs struct {
	elapsed, own time.Duration
	server       *Server // nil = not known; its CPUPerMillion is filled by newReport
}

// Report holds the results of a load. Samples are those of successful requests unless a field's
// comment differs.
type Report struct {
	Protocol    string `json:"protocol"`
	Series      int    `json:"series"`
	Batch       int    `json:"batch_samples"`
	Concurrency int    `json:"concurrency"`
	// sample time of the first round, ms since the Unix epoch
	FirstSampleMS int64 `json:"first_sample_ms"`
	LastSampleMS  int64 `json:"last_sample_ms"` // sample time of the last round that was begun

	Seconds          float64 `json:"seconds"` // from the first request to the last answer
	Samples          int64   `json:"samples"`
	SamplesSent      int64   `json:"samples_sent"` // also those in failed requests
	SamplesPerSecond float64 `json:"samples_per_second"`
	// status code or error → requests
	Outcomes       map[string]int    `json:"requests_by_outcome"`
	Messages       map[string]string `json:"failure_messages"` // outcome → the first message
	RequestsOK     int               `json:"requests_ok"`
	RequestsFailed int               `json:"requests_failed"`
	Latency        Latency           `json:"latency_ms"`

	// bodies after snappy, without HTTP headers
	WireBytesPerSample     float64 `json:"wire_bytes_per_sample"`
	BodyBytesPerSample     float64 `json:"body_bytes_per_sample"` // bodies before snappy
	GeneratorCPUSeconds    float64 `json:"generator_cpu_seconds"`
	GeneratorCPUPerMillion float64 `json:"generator_cpu_seconds_per_million"`
	// absent without a pid or when the process is gone
	Server *Server `json:"server,omitempty"`
}

// Latency is that of all requests, in ms, failed ones included.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Server holds the resources of the server's process.
type Server struct {
	CPUSeconds    float64 `json:"cpu_seconds"` // user and system, until the settle time was over
	CPUPerMillion float64 `json:"cpu_seconds_per_million"`
	PeakRSSBytes  uint64  `json:"peak_rss_bytes"` // since the process began
}

func newReport(s Settings, f *fleet.Fleet, t *tally, c costs) Report {
	r := Report{
		Protocol: s.Protocol.String(), Series: f.Len(), Batch: s.Batch, Concurrency: s.Concurrency,
		FirstSampleMS: timestamp(s, 0), LastSampleMS: timestamp(s, t.lastRound),
		Seconds: c.elapsed.Seconds(), Samples: t.accepted, SamplesSent: t.sent,
		SamplesPerSecond: ratio(float64(t.accepted), c.elapsed.Seconds()),
		Outcomes:         t.outcomes, Messages: t.messages,
		RequestsOK: len(t.latencies) - t.failed, RequestsFailed: t.failed,
		Latency: Latency{
			P50: millis(percentile(t.latencies, 0.5)), P90: millis(percentile(t.latencies, 0.9)),
			P99: millis(percentile(t.latencies, 0.99)), Max: millis(percentile(t.latencies, 1)),
		},
		WireBytesPerSample:     ratio(float64(t.wire), float64(t.sent)),
		BodyBytesPerSample:     ratio(float64(t.body), float64(t.sent)),
		GeneratorCPUSeconds:    c.own.Seconds(),
		GeneratorCPUPerMillion: ratio(c.own.Seconds()*1e6, float64(t.sent)),
	}
	if c.server != nil {
		server := *c.server
		server.CPUPerMillion = ratio(server.CPUSeconds*1e6, float64(t.accepted))
		r.Server = &server
	}
	return r
}

// WriteJSON writes the report as one indented JSON object.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// WriteText writes the report for people.
func (r Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	line("traffic", "protocol %s, %d series, %d samples/request, %d senders", r.Protocol, r.Series, r.Batch, r.Concurrency)
	line("sample time", "%s to %s", rfc3339(r.FirstSampleMS), rfc3339(r.LastSampleMS))
	line("samples", "%d accepted of %d sent in %.2f s", r.Samples, r.SamplesSent, r.Seconds)
	line("samples/s", "%.0f", r.SamplesPerSecond)
	line("requests", "%d ok, %d failed", r.RequestsOK, r.RequestsFailed)
	for _, k := range sortedKeys(r.Outcomes) {
		line("  "+k, "%d %s", r.Outcomes[k], r.Messages[k])
	}
	line("latency ms", "p50 %.1f, p90 %.1f, p99 %.1f, max %.1f", r.Latency.P50, r.Latency.P90, r.Latency.P99, r.Latency.Max)
	line("bytes/sample", "%.2f on the wire, %.2f before compression", r.WireBytesPerSample, r.BodyBytesPerSample)
	line("generator CPU", "%.2f s, %.3f s per million samples", r.GeneratorCPUSeconds, r.GeneratorCPUPerMillion)
	if s := r.Server; s != nil {
		line("server CPU", "%.2f s, %.3f s per million samples", s.CPUSeconds, s.CPUPerMillion)
		line("server peak RSS", "%.1f MB", float64(s.PeakRSSBytes)/1e6)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func rfc3339(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ratio is a/b, or 0 where b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
