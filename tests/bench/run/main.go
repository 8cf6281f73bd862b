// Command run starts Promlake and its peers in turn, under equal conditions, loads each with the same traffic and prints one table.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/promlake/promlake/tests/bench"
	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/wire"
)

var errFailed = errors.New("a server refused requests or could not be measured; see above")

type flags struct {
	ServerBin   string        `default:"bin/promlake" help:"Promlake's binary."`
	PeersDir    string        `default:".cache/peers" help:"Folder with the peers, as fetch-peers.sh leaves it."`
	Only        []string      `enum:"promlake,victoria-metrics,prometheus" help:"Run only these servers (promlake, victoria-metrics, prometheus)."`
	Repeat      int           `default:"1" name:"rounds" help:"Run every server so many times, in rotated order; the table shows medians."`
	Hosts       int           `default:"200" help:"Number of virtual hosts."`
	Duration    time.Duration `default:"60s" help:"How long to load each server."`
	Scrapes     int           `help:"Stop each run after so many scrapes of every host, so that all servers get equal work (0 = only --duration stops)."`
	Batch       int           `default:"2000" help:"Samples in a request."`
	Concurrency int           `default:"4" help:"Number of senders."`
	Rate        float64       `help:"Samples per second (0 = as fast as each server answers)."`
	Protocol    int           `default:"1" enum:"1,2" help:"Version of remote_write sent to Promlake; the peers only know 1."`
	Settle      time.Duration `default:"5s" help:"How long after the load a server's CPU time still counts (deferred work)."`
	WorkDir     string        `type:"path" help:"Where the servers' folders go (default: the system's temporary folder)."`
	JSON        bool          `name:"json" help:"Print every run as JSON, one object a line, instead of the table."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Description("Compares Promlake with its peers under remote_write load."), kong.UsageOnError())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := compare(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, f flags) error {
	if f.Repeat < 1 {
		return fmt.Errorf("rounds %d: want 1 or more", f.Repeat)
	}
	c, err := capture.Read(bytes.NewReader(bench.Golden()))
	if err != nil {
		return fmt.Errorf("read golden capture: %w", err)
	}
	hosts, err := fleet.New(c, f.Hosts)
	if err != nil {
		return err
	}
	specs := f.installed()
	if len(specs) == 0 {
		return errors.New("no server to run; build bin/promlake or fetch the peers with make bench-peers")
	}
	var runs []run
	for _, spec := range schedule(specs, f.Repeat) {
		r, err := once(ctx, spec, hosts, f.settings(spec), f.WorkDir)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.Error = err.Error()
		}
		fmt.Fprintln(os.Stderr, "bench:", r)
		runs = append(runs, r)
	}
	return publish(os.Stdout, f.JSON, runs)
}

// installed returns the servers that are asked for and there, and says which are not.
func (f flags) installed() []server.Spec {
	var specs []server.Spec
	for _, spec := range server.Specs(f.ServerBin, f.PeersDir) {
		if !wanted(f.Only, spec.Name) {
			continue
		}
		if err := spec.Installed(); err != nil {
			fmt.Fprintf(os.Stderr, "bench: skipped: %v\n", err)
			continue
		}
		specs = append(specs, spec)
	}
	return specs
}

func (f flags) settings(spec server.Spec) load.Settings {
	protocol := wire.V1
	if spec.Name == server.Promlake {
		protocol = wire.Version(f.Protocol)
	}
	return load.Settings{
		Protocol: protocol, Batch: f.Batch, Concurrency: f.Concurrency, Rate: f.Rate, Duration: f.Duration,
		Rounds: f.Scrapes, Settle: f.Settle,
	}
}
