// Command promlake-load replays node_exporter scrapes as remote_write traffic from many virtual hosts and prints what it cost the server.
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
	"github.com/promlake/promlake/tests/bench/wire"
)

var errFailed = errors.New("not every request succeeded")

type flags struct {
	URL         string            `required:"" help:"URL of the remote_write endpoint, such as http://127.0.0.1:9009/api/v1/write."`
	PID         int               `name:"pid" help:"Process of the server, for its CPU time and memory (0 = do not report them)."`
	Hosts       int               `default:"200" help:"Number of virtual hosts (with the default capture, 507 series each)."`
	Duration    time.Duration     `default:"60s" help:"How long to send."`
	Rounds      int               `help:"Stop after so many scrapes of every host (0 = only --duration stops)."`
	Protocol    int               `default:"1" enum:"1,2" help:"Version of remote_write: 1 or 2."`
	Batch       int               `default:"2000" help:"Samples in a request."`
	Concurrency int               `default:"4" help:"Number of senders; each has its own share of the series."`
	Rate        float64           `help:"Samples per second over all senders (0 = as fast as the server answers)."`
	Interval    time.Duration     `default:"15s" help:"Time between two scrapes of a host, in sample time."`
	Start       time.Time         `help:"Sample time of the first scrape, RFC 3339 (default: such that the run ends now, or some hours ago without --rate)."`
	Settle      time.Duration     `help:"How long after the last answer the server's CPU time still counts."`
	Timeout     time.Duration     `default:"30s" help:"Longest wait for an answer."`
	Header      map[string]string `help:"Further request header, NAME=VALUE (repeatable)."`
	Capture     string            `type:"existingfile" help:"Replay this capture (plain, .gz, .zst or .xz) instead of the golden one."`
	JSON        bool              `name:"json" help:"Print the report as JSON."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Description("Replays node_exporter scrapes as remote_write traffic from many virtual hosts."), kong.UsageOnError())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "promlake-load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) error {
	c, err := f.open()
	if err != nil {
		return err
	}
	if c.Dropped > 0 {
		fmt.Fprintf(os.Stderr, "promlake-load: %d series are left out because some scrape lacks them\n", c.Dropped)
	}
	hosts, err := fleet.New(c, f.Hosts)
	if err != nil {
		return err
	}
	report, err := load.Run(ctx, hosts, f.settings(), time.Now)
	if report.SamplesSent == 0 && err != nil {
		return err // nothing to report
	}
	print := report.WriteText
	if f.JSON {
		print = report.WriteJSON
	}
	if report.RequestsFailed > 0 || report.Samples == 0 {
		err = errors.Join(err, errFailed)
	}
	return errors.Join(print(os.Stdout), err)
}

func (f flags) open() (*capture.Capture, error) {
	if f.Capture != "" {
		return capture.Open(f.Capture)
	}
	return capture.Read(bytes.NewReader(bench.Golden()))
}

func (f flags) settings() load.Settings {
	return load.Settings{
		URL: f.URL, PID: f.PID, Protocol: wire.Version(f.Protocol), Batch: f.Batch, Concurrency: f.Concurrency, Rate: f.Rate,
		Duration: f.Duration, Rounds: f.Rounds, Interval: f.Interval, Start: f.Start, Settle: f.Settle, Timeout: f.Timeout, Headers: f.Header,
	}
}
