package rules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/promlake/promlake/tests/bench/answer"
	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
)

// work is what all servers do.
type work struct {
	*Flags

	capture *capture.Capture
	hosts   *fleet.Fleet
	groups  []group
}

// result is the measurement of a server.
type result struct {
	Server       string    `json:"server"`
	Seconds      float64   `json:"seconds"`       // since its start
	CPU          float64   `json:"cpu_seconds"`   // user and system time
	Minutes      []float64 `json:"cpu_minutes"`   // the same by minute
	PeakRSS      uint64    `json:"peak_rss"`      // bytes
	GeneratorCPU float64   `json:"generator_cpu"` // seconds of the targets, of all servers that run at once

	Evaluations  float64 `json:"evaluations"`        // of rules
	Missed       float64 `json:"evaluations_missed"` // of groups
	Failed       float64 `json:"evaluations_failed"` // of rules
	GroupSeconds float64 `json:"group_seconds"`      // mean of an evaluation of a group
	Results      int     `json:"result_series"`      // of recording rules, at the end
	ResultsDue   int     `json:"result_series_due"`
	Alerts       int     `json:"alerts"` // pending and firing at the end
	Recomputed   int     `json:"recomputed"`
	LagMedian    float64 `json:"lag_median_seconds"`
	LagMax       float64 `json:"lag_max_seconds"`

	Scrapes       int     `json:"scrapes"` // that targets answered
	ScrapesFailed int     `json:"scrapes_failed"`
	ScrapesMissed int     `json:"scrapes_missed"`
	Samples       float64 `json:"samples"` // appended, results of rules included

	Errors []string `json:"errors,omitempty"`

	exact answer.Answer // results that do not depend on the moment of a scrape
	all   answer.Answer // results of all recording rules
}

func (r *result) fail(format string, args ...any) {
	r.Errors = append(r.Errors, fmt.Sprintf(format, args...))
}

// once runs a server for the duration in a folder of its own, which it removes unless something
// failed.
func (w *work) once(ctx context.Context, spec server.Spec) (r *result, err error) {
	dir, err := os.MkdirTemp(w.WorkDir, "bench-rules-"+spec.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() {
		if err == nil && len(r.Errors) == 0 || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		} else {
			fmt.Fprintf(os.Stderr, "bench: the files of %s are kept in %s\n", spec.Name, dir)
		}
	}()
	t, err := serve(w.hosts, w.capture, w.Scrape)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if spec, err = w.configured(spec, t.addr); err != nil {
		return nil, err
	}
	generator, err := proc.Self()
	if err != nil {
		return nil, err
	}
	p, err := server.Start(ctx, spec, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	t.begin(time.Now())
	r = &result{Server: spec.Name}
	if err := r.watch(ctx, p, w.Duration); err != nil {
		return nil, err
	}
	end := time.Now()
	r.Scrapes, r.ScrapesMissed = t.count(end)
	after, err := proc.Self()
	if err != nil {
		return nil, err
	}
	r.GeneratorCPU = (after - generator).Seconds()
	if err := r.count(ctx, p); err != nil {
		return nil, err
	}
	return r, w.examine(ctx, p, r, end)
}

// configured returns a server with the configuration.
func (w *work) configured(spec server.Spec, addr string) (server.Spec, error) {
	own, err := files(w.hosts, w.groups, addr, w.Scrape, w.Evaluation)
	if err != nil {
		return spec, err
	}
	all := map[string]string{}
	maps.Copy(all, spec.Files)
	maps.Copy(all, own)
	spec.Files = all
	if args := spec.Args; spec.Name == server.Promlake {
		spec.Args = func(addr, dir string) []string {
			return append(append(args(addr, dir), "--config.file", filepath.Join(dir, configName)), w.PromlakeArgs...)
		}
	}
	return spec, nil
}

// watch measures a server's processor time by minute, until the duration is over.
func (r *result) watch(ctx context.Context, p *server.Process, d time.Duration) error {
	begin := time.Now()
	for last := time.Duration(0); last < d; {
		next := min(last+time.Minute, d)
		timer := time.NewTimer(time.Until(begin.Add(next)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		u, err := proc.Read(p.PID())
		if err != nil {
			return err
		}
		if next-last == time.Minute {
			r.Minutes = append(r.Minutes, u.CPU.Seconds()-r.CPU)
		}
		r.CPU, r.PeakRSS, r.Seconds = u.CPU.Seconds(), u.PeakRSS, time.Since(begin).Seconds()
		last = next
		fmt.Fprintf(os.Stderr, "bench: %s, %s: %.1f CPU-s, peak RSS %.0f MB\n", r.Server, last, r.CPU, float64(r.PeakRSS)/1e6)
	}
	return nil
}

// Metrics of both servers, and the counters of their samples.
const (
	evaluations = "prometheus_rule_evaluations_total"
	failures    = "prometheus_rule_evaluation_failures_total"
	missed      = "prometheus_rule_group_iterations_missed_total"
	durations   = "prometheus_rule_group_duration_seconds"
	dropped     = "promlake_queue_dropped_samples_total"
	refused     = "promlake_queue_refused_appends_total"
)

var appended = map[string]string{server.Promlake: "promlake_queue_stored_samples_total", server.Prometheus: "prometheus_tsdb_head_samples_appended_total"}

// count reads the server's own metrics.
func (r *result) count(ctx context.Context, p *server.Process) error {
	want := []string{appended[r.Server], durations}
	if r.Server == server.Promlake {
		want = append(want, dropped, refused)
	}
	all, err := peer.Families(ctx, p.URL("/metrics"), want...)
	if err != nil {
		return fmt.Errorf("read the metrics of %s: %w", r.Server, err)
	}
	r.Evaluations, r.Failed, r.Missed = sum(all[evaluations]), sum(all[failures]), sum(all[missed])
	r.Samples = sum(all[appended[r.Server]])
	if s := all[durations].GetMetric()[0].GetSummary(); s.GetSampleCount() > 0 {
		r.GroupSeconds = s.GetSampleSum() / float64(s.GetSampleCount())
	}
	if r.Failed > 0 {
		r.fail("%.0f evaluations failed", r.Failed)
	}
	for _, lost := range []string{dropped, refused} {
		if n := sum(all[lost]); n > 0 {
			r.fail("%s is %.0f", lost, n)
		}
	}
	return nil
}

// sum adds up the counters of a family; nil has none.
func sum(f *dto.MetricFamily) (n float64) {
	for _, m := range f.GetMetric() {
		n += m.GetCounter().GetValue() + m.GetUntyped().GetValue()
	}
	return n
}
