// Package dashboard counts the requests to the store that a dashboard makes when it is opened and
// when it refreshes, over a directory and over a bucket.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/gateway"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// Flags of the command.
type Flags struct {
	server.Flags    `embed:""`
	gateway.Program `embed:""`

	Hosts   int             `default:"5" help:"Hosts of 507 series each."`
	Span    time.Duration   `default:"8h" help:"Span of the samples, a sample each 15 s until now."`
	Ranges  []time.Duration `default:"15m,1h,3h,6h,8h" help:"Time ranges of the dashboard."`
	WorkDir string          `type:"path" help:"Parent of the servers' folders (default: the system's temporary folder)."`
	JSON    bool            `name:"json" help:"Print JSON instead of the table."`
}

const (
	interval = 15 * time.Second
	// fresh is the time before now whose samples are still in segments; the others are compacted.
	fresh = 10 * time.Minute
	// batch is the number of samples in a request.
	batch = 2000
	// loadTimeout bounds a load; only the number of rounds ends it otherwise.
	loadTimeout = time.Hour
)

// Run counts the requests and prints the table.
func (f *Flags) Run(ctx context.Context) error {
	results, err := f.measure(ctx)
	if err != nil {
		return err
	}
	if f.JSON {
		return table.WriteJSON(os.Stdout, results)
	}
	return table.Write(os.Stdout, rows(results))
}

// Compare counts the requests. VictoriaMetrics has no store.
func (f *Flags) Compare(ctx context.Context) ([]table.Comparison, error) {
	results, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	return comparisons(results, len(f.Ranges)), nil
}

func (f *Flags) measure(ctx context.Context) (results []result, err error) {
	if f.Span < 2*fresh {
		return nil, fmt.Errorf("span of %s: want %s or more", f.Span, 2*fresh)
	}
	specs, err := f.Installed(server.Promlake)
	if err != nil {
		return nil, err
	}
	spec := specs[0].With("--no-compactor.enabled")
	c, err := capture.Open("")
	if err != nil {
		return nil, err
	}
	hosts, err := fleet.New(c, f.Hosts)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(f.WorkDir, "bench-dashboard-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	v := &visit{hosts: hosts, begin: time.Now().Add(-f.Span).Truncate(interval)}
	old := int((f.Span - fresh) / interval)
	if err := v.fill(ctx, spec, dir, old); err != nil {
		return nil, err
	}
	if _, err := disk.Compact(ctx, f.ServerBin, server.Store(dir), dir, disk.Settled); err != nil {
		return nil, err
	}
	if err := v.fill(ctx, spec, dir, int(fresh/interval)); err != nil {
		return nil, err
	}
	g, err := f.Start(ctx, filepath.Join(dir, "gateway"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	if err := g.Fill(ctx, f.ServerBin, server.Store(dir)); err != nil {
		return nil, err
	}
	for _, over := range []struct {
		name string
		spec server.Spec
	}{{"a directory", spec}, {"a bucket", spec.Over(g.URL()).With("--no-compactor.enabled")}} {
		own := *v // both stores get the same samples
		found, err := own.visit(ctx, over.spec, dir, f.Ranges)
		if err != nil {
			return nil, fmt.Errorf("count over %s: %w", over.name, err)
		}
		for _, r := range found {
			r.Store = over.name
			results = append(results, r)
		}
	}
	return results, nil
}

// visit is somebody who watches a dashboard of the hosts.
type visit struct {
	hosts  *fleet.Fleet
	begin  time.Time // of the samples
	rounds int       // scrapes so far
}

// fill starts the server, sends it the next rounds, and stops it.
func (v *visit) fill(ctx context.Context, spec server.Spec, dir string, rounds int) error {
	p, err := server.Start(ctx, spec, dir)
	if err != nil {
		return err
	}
	return errors.Join(v.scrape(ctx, p, rounds), p.Stop())
}

// scrape sends the next rounds of all hosts.
func (v *visit) scrape(ctx context.Context, p *server.Process, rounds int) error {
	r, err := load.Run(ctx, v.hosts, load.Settings{
		URL: p.WriteURL(), Batch: batch, Rounds: rounds, Interval: interval, Start: v.now().Add(interval), Duration: loadTimeout,
	}, time.Now)
	if err != nil {
		return err
	}
	if r.RequestsFailed > 0 {
		return fmt.Errorf("%d requests failed: %v", r.RequestsFailed, r.Messages)
	}
	v.rounds += rounds
	return nil
}

// now is the time of the last scrape.
func (v *visit) now() time.Time { return v.begin.Add(time.Duration(v.rounds) * interval) }
