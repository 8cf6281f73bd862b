// Package ingest starts Promlake and its peers in turn, under equal conditions, loads each with the
// same traffic and prints one table.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/gateway"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
	"github.com/promlake/promlake/tests/bench/wire"
)

var errFailed = errors.New("a server refused requests or could not be measured; see above")

// Flags of the command.
type Flags struct {
	server.Flags    `embed:""`
	gateway.Program `embed:""`

	Repeat      int           `default:"1" name:"rounds" help:"Number of runs of each server, in rotated order; the table shows medians."`
	Hosts       int           `default:"200" help:"Number of virtual hosts."`
	Duration    time.Duration `default:"60s" help:"Duration of the load of each server."`
	Scrapes     int           `help:"End each run after this number of scrapes of every host, so that all servers get equal work (0 = only --duration ends it)."`
	Batch       int           `default:"2000" help:"Samples in a request."`
	Concurrency int           `default:"4" help:"Number of senders."`
	Rate        float64       `help:"Samples per second (0 = as fast as each server answers)."`
	Protocol    string        `default:"1" enum:"1,2,influx,text,otlp,datadog,opentsdb,jsonlines,csv,graphite" help:"Version of remote_write sent to Promlake, 1 or 2 (the peers support only 1); or ${enum} to the servers that have it. Debian's VictoriaMetrics has no otlp, and no protobuf of datadog."`
	Interval    time.Duration `default:"15s" help:"Time between two scrapes of a host, in sample time."`
	Compact     bool          `help:"Load a day in the past, compact it afterwards, and measure that and the bytes that stay. Promlake does not compact during the load; VictoriaMetrics merges then as it does."`
	BucketDelay time.Duration `help:"Run Promlake alone, over a bucket of versitygw whose requests take this much longer, such as 30ms."`
	Settle      time.Duration `default:"5s" help:"Time after the load during which a server's CPU time still counts (deferred work)."`
	WorkDir     string        `type:"path" help:"Parent of the servers' folders (default: the system's temporary folder)."`
	JSON        bool          `name:"json" help:"Print every run as JSON, one object a line, instead of the table."`
}

// Run measures all servers and prints the table.
func (f *Flags) Run(ctx context.Context) error {
	runs, err := f.measure(ctx)
	if err != nil {
		return err
	}
	return publish(os.Stdout, f.JSON, runs)
}

// Compare measures Promlake and VictoriaMetrics once under a load with a name. A VictoriaMetrics
// that refuses all of it does not have the protocol, and has no figures.
func (f *Flags) Compare(ctx context.Context, name string) ([]table.Comparison, error) {
	runs, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(r run) bool { return r.Server != server.Promlake && r.Error == "" && r.Report.RequestsOK == 0 })
	if i := slices.IndexFunc(runs, run.broken); i >= 0 {
		return nil, fmt.Errorf("%w: %s", errFailed, runs[i])
	}
	return comparisons(name, runs), nil
}

// measure loads the servers one after the other.
func (f *Flags) measure(ctx context.Context) ([]run, error) {
	if f.Repeat < 1 {
		return nil, fmt.Errorf("rounds %d: want 1 or more", f.Repeat)
	}
	if f.Compact && (f.Scrapes < 1 || time.Duration(f.Scrapes)*f.Interval > 24*time.Hour) {
		return nil, fmt.Errorf("%d scrapes, %s apart: a load that is compacted has at least one, and ends within a day", f.Scrapes, f.Interval)
	}
	c, err := capture.Open("")
	if err != nil {
		return nil, err
	}
	hosts, err := fleet.New(c, f.Hosts)
	if err != nil {
		return nil, err
	}
	protocol, err := wire.Parse(f.Protocol)
	if err != nil {
		return nil, err
	}
	if f.Compact && f.BucketDelay > 0 {
		return nil, errors.New("a load that is compacted is stored in a folder: --compact excludes --bucket-delay")
	}
	names := []string{server.Promlake, server.VictoriaMetrics, server.Prometheus}
	if f.BucketDelay > 0 {
		names = names[:1]
	}
	specs, err := f.Installed(names...)
	if err != nil {
		return nil, err
	}
	if specs = having(specs, protocol); len(specs) == 0 {
		return nil, fmt.Errorf("none of these servers takes %s", protocol)
	}
	var runs []run
	for _, spec := range schedule(specs, f.Repeat) {
		r, err := f.once(ctx, spec, hosts, f.settings(spec, protocol))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			r.Error = err.Error()
		}
		fmt.Fprintln(os.Stderr, "bench:", r)
		runs = append(runs, r)
	}
	return runs, nil
}

// having returns the servers that take a protocol, at their WriteURL.
func having(specs []server.Spec, protocol wire.Version) (out []server.Spec) {
	for _, s := range specs {
		taking, ok := s.Taking(protocol.String())
		if protocol.Remote() {
			taking, ok = s, true
		}
		if ok {
			out = append(out, taking)
		}
	}
	return out
}

func (f *Flags) settings(spec server.Spec, protocol wire.Version) load.Settings {
	if protocol == wire.V2 && spec.Name != server.Promlake {
		protocol = wire.V1
	}
	s := load.Settings{
		Protocol: protocol, Batch: f.Batch, Concurrency: f.Concurrency, Rate: f.Rate, Duration: f.Duration,
		Rounds: f.Scrapes, Interval: f.Interval, Settle: f.Settle,
	}
	if f.Compact {
		s.Start = day
	}
	return s
}
