// Package storage replays a day of real node_exporter values into Promlake and VictoriaMetrics,
// compacts both, and compares the costs on disk, of compaction, and of a scan.
package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// Flags of the command.
type Flags struct {
	server.Flags `embed:""`

	Capture  string        `type:"existingfile" help:"Replay this capture (plain, .gz, .zst or .xz) instead of the golden one, which is short."`
	Hosts    int           `default:"4" help:"Number of hosts; 12 make a block of 50 million samples with a capture of 507 series."`
	Span     time.Duration `default:"24h" help:"Sample time to replay."`
	Interval time.Duration `default:"10s" help:"Time between two scrapes of a host."`
	Vary     bool          `help:"Scale every series by a factor of its own in every host and every pass through the capture, so that the day does not repeat itself."`
	ScanRuns int           `default:"9" help:"Alternating runs of DuckDB over Promlake's block and over plain doubles (0 = none)."`
	WorkDir  string        `type:"path" help:"Parent of the servers' folders (default: the system's temporary folder)."`
	Keep     bool          `help:"Keep the servers' folders and print their path."`
	JSON     bool          `name:"json" help:"Print the results as JSON instead of tables."`
}

// day is the replayed day. It lies in the past, so that all its windows are closed.
var day = time.Date(2026, time.March, 3, 0, 0, 0, 0, time.UTC)

// Run measures the servers and prints the tables.
func (f *Flags) Run(ctx context.Context) error {
	results, err := f.replay(ctx)
	if err != nil {
		return err
	}
	return publish(os.Stdout, f.JSON, results)
}

// Compare measures Promlake and VictoriaMetrics.
func (f *Flags) Compare(ctx context.Context) ([]table.Comparison, error) {
	results, err := f.replay(ctx)
	if err != nil {
		return nil, err
	}
	return comparisons(results), nil
}

// replay measures the servers in a folder of its own.
func (f *Flags) replay(ctx context.Context) (results []result, err error) {
	rounds, err := f.rounds()
	if err != nil {
		return nil, err
	}
	c, err := capture.Open(f.Capture)
	if err != nil {
		return nil, err
	}
	r, err := fleet.NewReplay(c, fleet.ReplaySettings{Hosts: f.Hosts, Rounds: rounds, Start: day, Interval: f.Interval, Vary: f.Vary})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(f.WorkDir, "bench-storage-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() {
		if f.Keep {
			fmt.Fprintln(os.Stderr, "bench: the files stay in", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	fmt.Fprintf(os.Stderr, "bench: %d hosts of %d series, %d scrapes each\n", f.Hosts, r.PerHost(), rounds)
	return f.measure(ctx, r, rounds, dir)
}

// measure runs the chosen servers one after the other, each in its own folder.
func (f *Flags) measure(ctx context.Context, r *fleet.Replay, rounds int, dir string) ([]result, error) {
	specs, err := f.Installed(server.Promlake, server.VictoriaMetrics)
	if err != nil {
		return nil, err
	}
	var results []result
	for _, spec := range specs {
		own := filepath.Join(dir, spec.Name)
		if err := os.Mkdir(own, 0o755); err != nil {
			return nil, fmt.Errorf("make folder: %w", err)
		}
		var res result
		var err error
		if spec.Name == server.Promlake {
			res, err = f.measurePromlake(ctx, spec, r, rounds, own)
		} else {
			res, err = measureVictoria(ctx, spec, r, rounds, own)
		}
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", spec.Name, err)
		}
		results = append(results, res)
	}
	return results, nil
}

func (f *Flags) rounds() (int, error) {
	if f.Interval < time.Millisecond || f.Interval%time.Millisecond != 0 || f.Span < f.Interval || f.Span > 24*time.Hour {
		return 0, fmt.Errorf("span %s, interval %s: want whole milliseconds, and a span from one interval to a day", f.Span, f.Interval)
	}
	return int(f.Span / f.Interval), nil
}
