// Package rules runs Promlake and Prometheus with one configuration over the same targets, and
// compares what scraping and the evaluation of rules cost.
package rules

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

var errFailed = errors.New("scrapes or evaluations failed, or results are missing or differ; see above")

// Flags of the command.
type Flags struct {
	server.Flags `embed:""`

	Targets      int           `default:"1000" help:"Number of targets."`
	Series       int           `default:"500" help:"Series of each target."`
	Rules        int           `default:"10000" help:"Number of rules (0 = scraping only)."`
	GroupSize    int           `default:"100" help:"Rules in a group."`
	Scrape       time.Duration `name:"scrape-interval" default:"15s" help:"Time between two scrapes of a target."`
	Evaluation   time.Duration `name:"evaluation-interval" default:"1m" help:"Time between two evaluations of a rule."`
	Duration     time.Duration `default:"30m" help:"How long each server runs."`
	Together     bool          `help:"Run the servers at the same time instead of one after the other."`
	PromlakeArgs []string      `sep:"none" help:"Additional arguments of promlake serve (repeatable)."`
	WorkDir      string        `type:"path" help:"Parent of the servers' folders (default: the system's temporary folder)."`
	JSON         bool          `name:"json" help:"Print JSON instead of the table."`
}

// Run measures the servers and prints the table.
func (f *Flags) Run(ctx context.Context) error {
	results, err := f.measure(ctx)
	if err != nil {
		return err
	}
	agree(results)
	if f.JSON {
		err = table.WriteJSON(os.Stdout, results)
	} else {
		err = table.Write(os.Stdout, rows(results))
	}
	for _, r := range results {
		for _, what := range r.Errors {
			fmt.Fprintf(os.Stderr, "bench: %s: %s\n", r.Server, what)
			err = errFailed
		}
	}
	return err
}

// check returns an error for flags that leave nothing to measure.
func (f *Flags) check() error {
	switch {
	case f.Scrape < time.Second || f.Evaluation < time.Second || f.Scrape%time.Millisecond != 0 || f.Evaluation%time.Millisecond != 0:
		return fmt.Errorf("intervals of %s and %s: want at least a second, and whole milliseconds", f.Scrape, f.Evaluation)
	case f.Duration < f.shortest():
		return fmt.Errorf("duration %s: want at least %s, so that each rule is evaluated over several scrapes", f.Duration, f.shortest())
	case f.Rules < 0:
		return fmt.Errorf("%d rules: want 0 or more", f.Rules)
	case f.GroupSize < smallestGroup:
		return fmt.Errorf("groups of %d rules: want at least %d, one of each form", f.GroupSize, smallestGroup)
	}
	return nil
}

// start is the time after the start of a server in which lags do not count yet: Prometheus begins to
// scrape after five seconds.
func (f *Flags) start() time.Duration { return 2*f.Scrape + 10*time.Second }

// shortest is a duration in which each rule is evaluated once after the start.
func (f *Flags) shortest() time.Duration { return f.start() + 2*f.Evaluation }

// measure runs the servers.
func (f *Flags) measure(ctx context.Context) ([]*result, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	specs, err := f.Installed(server.Promlake, server.Prometheus)
	if err != nil {
		return nil, err
	}
	c, err := capture.Open("")
	if err != nil {
		return nil, err
	}
	if c, err = sized(c, f.Series); err != nil {
		return nil, err
	}
	hosts, err := fleet.New(c, f.Targets)
	if err != nil {
		return nil, err
	}
	w := &work{Flags: f, capture: c, hosts: hosts, groups: mix(hosts, f.Rules, f.GroupSize)}
	results := make([]*result, len(specs))
	g, ctx := errgroup.WithContext(ctx)
	if !f.Together {
		g.SetLimit(1)
	}
	for i, spec := range specs {
		g.Go(func() (err error) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if results[i], err = w.once(ctx, spec); err != nil {
				return fmt.Errorf("measure %s: %w", spec.Name, err)
			}
			return nil
		})
	}
	return results, g.Wait()
}
