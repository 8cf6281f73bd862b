// Package growth measures what a sample and a small query cost when a server holds 100,000, a
// million and five million series, some of which other series replace all the time.
package growth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// Flags of the command.
type Flags struct {
	server.Flags `embed:""`

	Series  []int         `default:"100000,1000000,5000000" help:"Numbers of series, in rising order."`
	Rounds  int           `default:"20" help:"Samples of each series."`
	Batch   int           `default:"10000" help:"Samples in a request."`
	Churn   float64       `default:"0.01" help:"Share of the hosts that new ones replace in every 10 minutes of sample time."`
	Queries int           `default:"20" help:"Hosts for which a small query is sent after each load, once and then fifty times more."`
	Settle  time.Duration `default:"5s" help:"Time after the load during which a server's processor time still counts."`
	WorkDir string        `type:"path" help:"Parent of the servers' folders (default: the system's temporary folder)."`
	JSON    bool          `name:"json" help:"Print JSON instead of the table."`
}

// interval is the sample time between two scrapes: 20 rounds span 20 minutes.
const interval = time.Minute

// loadTimeout bounds a load; only the number of rounds ends it otherwise.
const loadTimeout = time.Hour

// Run measures every server at every size and prints the table.
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

// Compare measures Promlake and VictoriaMetrics at every size.
func (f *Flags) Compare(ctx context.Context) ([]table.Comparison, error) {
	results, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	return comparisons(results), nil
}

func (f *Flags) measure(ctx context.Context) ([]result, error) {
	if f.Queries < 1 || f.Rounds < 6 {
		return nil, fmt.Errorf("%d queries after %d rounds: want at least 1 query, and 6 rounds for its rate over 5 minutes", f.Queries, f.Rounds)
	}
	specs, err := f.Installed(server.Promlake, server.VictoriaMetrics)
	if err != nil {
		return nil, err
	}
	c, err := capture.Open("")
	if err != nil {
		return nil, err
	}
	var results []result
	for _, series := range f.Series {
		hosts, err := fleet.New(c, max(1, series/len(c.Series)))
		if err != nil {
			return nil, err
		}
		for _, spec := range specs {
			r, err := f.once(ctx, spec, hosts)
			if err != nil {
				return nil, fmt.Errorf("measure %s with %d series: %w", spec.Name, series, err)
			}
			fmt.Fprintln(os.Stderr, "bench:", r)
			results = append(results, r)
		}
	}
	return results, nil
}

// once loads a server in a folder of its own, sends the queries, and removes the folder.
func (f *Flags) once(ctx context.Context, spec server.Spec, hosts *fleet.Fleet) (r result, err error) {
	dir, err := os.MkdirTemp(f.WorkDir, "bench-growth-")
	if err != nil {
		return r, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := server.Start(ctx, spec, dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	r = result{Server: spec.Name, Series: hosts.Len()}
	r.Load, err = load.Run(ctx, hosts, load.Settings{
		URL: p.WriteURL(), PID: p.PID(), Batch: f.Batch, Rounds: f.Rounds, Interval: interval, Duration: loadTimeout,
		Churn: f.Churn, Settle: f.Settle,
	}, time.Now)
	if err != nil {
		return r, err
	}
	if r.Load.RequestsFailed > 0 {
		return r, fmt.Errorf("%d requests failed: %v", r.Load.RequestsFailed, r.Load.Messages)
	}
	r.Queries, err = ask(ctx, p, f.Queries, hosts, r.Load)
	return r, err
}
