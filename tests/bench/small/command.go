// Package small lets one agent write a few hundred samples a second to Promlake and to
// VictoriaMetrics at the same time, and compares what the two servers cost that mostly wait.
package small

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// Flags of the command.
type Flags struct {
	server.Flags `embed:""`

	Duration time.Duration `default:"75m" help:"How long the agent writes."`
	Hosts    int           `default:"20" help:"Hosts that the agent scrapes, of 507 series each."`
	Rate     float64       `default:"700" help:"Samples per second."`
	WorkDir  string        `type:"path" help:"Parent of the servers' folders (default: the system's temporary folder)."`
	JSON     bool          `name:"json" help:"Print JSON instead of the table."`
}

const (
	// batch is the number of samples in a request of a Prometheus.
	batch = 2000
	// look is the time between two readings of a server's memory.
	look = time.Second
)

// result is the measurement of a server.
type result struct {
	Server  string      `json:"server"`
	Load    load.Report `json:"load"`
	CPU     float64     `json:"cpu_s"`            // user and system time of the process since its start
	RSS     float64     `json:"median_rss_bytes"` // over all readings
	PeakRSS uint64      `json:"peak_rss_bytes"`
}

// Run measures the servers and prints the table.
func (f *Flags) Run(ctx context.Context) error {
	results, err := f.measure(ctx)
	if err != nil {
		return err
	}
	if f.JSON {
		return table.WriteJSON(os.Stdout, results)
	}
	return table.Write(os.Stdout, table.Comparisons(f.comparisons(results)))
}

// Compare measures Promlake and VictoriaMetrics.
func (f *Flags) Compare(ctx context.Context) ([]table.Comparison, error) {
	results, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	return f.comparisons(results), nil
}

// measure runs all servers at once, each in a folder of its own.
func (f *Flags) measure(ctx context.Context) (results []result, err error) {
	if f.Duration < 10*time.Second || f.Rate <= 0 {
		return nil, fmt.Errorf("%g samples/s for %s: want a rate, and at least 10 seconds", f.Rate, f.Duration)
	}
	specs, err := f.Installed(server.Promlake, server.VictoriaMetrics)
	if err != nil {
		return nil, err
	}
	c, err := capture.Open("")
	if err != nil {
		return nil, err
	}
	hosts, err := fleet.New(c, f.Hosts)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(f.WorkDir, "bench-small-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	results = make([]result, len(specs))
	all, ctx := errgroup.WithContext(ctx)
	for i, spec := range specs {
		all.Go(func() (err error) {
			if results[i], err = f.hold(ctx, spec, hosts, filepath.Join(dir, spec.Name)); err != nil {
				return fmt.Errorf("measure %s: %w", spec.Name, err)
			}
			return nil
		})
	}
	return results, all.Wait()
}

// hold runs one server under the load.
func (f *Flags) hold(ctx context.Context, spec server.Spec, hosts *fleet.Fleet, dir string) (r result, err error) {
	r.Server = spec.Name
	if err := os.Mkdir(dir, 0o755); err != nil {
		return r, fmt.Errorf("make folder: %w", err)
	}
	p, err := server.Start(ctx, spec, dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	var readings []float64
	watched, stop := context.WithCancel(ctx)
	defer stop()
	var watch errgroup.Group
	watch.Go(func() (err error) {
		readings, err = watchMemory(watched, p.PID())
		return err
	})
	interval := time.Duration(float64(hosts.Len()) / f.Rate * float64(time.Second)).Truncate(time.Millisecond)
	r.Load, err = load.Run(ctx, hosts, load.Settings{
		URL: p.WriteURL(), PID: p.PID(), Batch: batch, Concurrency: 1, Rate: f.Rate, Duration: f.Duration, Interval: interval, Start: time.Now(),
	}, time.Now)
	stop()
	if err = errors.Join(err, watch.Wait()); err != nil {
		return r, err
	}
	if r.Load.RequestsFailed > 0 {
		return r, fmt.Errorf("%d requests failed: %v", r.Load.RequestsFailed, r.Load.Messages)
	}
	u, err := proc.Read(p.PID())
	if err != nil {
		return r, err
	}
	r.CPU, r.PeakRSS = u.CPU.Seconds(), u.PeakRSS
	r.RSS, _ = table.Median(readings)
	return r, nil
}

// watchMemory reads the resident set of a process until ctx ends, at least once.
func watchMemory(ctx context.Context, pid int) (readings []float64, err error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		u, err := proc.Read(pid)
		if err != nil {
			return nil, err
		}
		readings = append(readings, float64(u.RSS))
		select {
		case <-ctx.Done():
			return readings, nil
		case <-tick.C:
		}
	}
}

func (f *Flags) comparisons(results []result) (out []table.Comparison) {
	name := fmt.Sprintf("a small server, %g samples/s for %s: ", f.Rate, f.Duration)
	for _, figure := range []struct {
		name, unit string
		of         func(result) float64
	}{
		{"processor", "CPU-s", func(r result) float64 { return r.CPU }},
		{"memory", "MB", func(r result) float64 { return r.RSS / 1e6 }},
		{"peak memory", "MB", func(r result) float64 { return float64(r.PeakRSS) / 1e6 }},
	} {
		c := table.Comparison{Name: name + figure.name, Unit: figure.unit}
		for _, r := range results {
			if r.Server == server.Promlake {
				c.Promlake = figure.of(r)
			} else {
				c.Peer = figure.of(r)
			}
		}
		out = append(out, c)
	}
	return out
}
