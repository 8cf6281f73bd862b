// Command ingestcost measures what a sample costs from its request to its block, in the quantities that a bill is made of: processor time,
// requests to the store and bytes. internal/cost takes its constants from it.
//
// It runs the stages in this process, as functions run them: one request after another, and a compaction cycle for every minute of the
// samples' time. Nothing is sent over a network.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/promlake/promlake/tests/bench"
	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
)

type flags struct {
	Mode     string        `default:"direct" enum:"direct,buffered" help:"How segments are written: one of each request, or of batches of messages."`
	Capture  string        `type:"existingfile" help:"Recording of a node_exporter to replay (default: the golden one of twenty scrapes)."`
	Hosts    int           `default:"20" help:"Number of virtual hosts, of 507 series each."`
	Batch    int           `default:"10000" help:"Samples in a request."`
	Messages int           `default:"10" help:"Messages of a batch, in mode buffered."`
	Interval time.Duration `default:"15s" help:"Time between two scrapes."`
	Span     time.Duration `default:"2h" help:"How much time to write, from midnight on."`
	Dir      string        `type:"path" help:"Where the store goes (default: a temporary folder, removed at the end)."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Description("Measures what ingestion and compaction of samples take."), kong.UsageOnError())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := printReport(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "ingestcost:", err)
		os.Exit(1)
	}
}

func printReport(ctx context.Context, f flags) error {
	c, err := readCapture(f.Capture)
	if err != nil {
		return err
	}
	hosts, err := fleet.New(c, f.Hosts)
	if err != nil {
		return fmt.Errorf("make hosts: %w", err)
	}
	if f.Dir == "" {
		if f.Dir, err = os.MkdirTemp("", "promlake-ingestcost-"); err != nil {
			return fmt.Errorf("make folder of the store: %w", err)
		}
		defer os.RemoveAll(f.Dir)
	}
	l, err := newLake(f)
	if err != nil {
		return err
	}
	report, err := l.measure(ctx, hosts)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(report); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}

func readCapture(path string) (*capture.Capture, error) {
	if path != "" {
		return capture.Open(path)
	}
	c, err := capture.Read(bytes.NewReader(bench.Golden()))
	if err != nil {
		return nil, fmt.Errorf("read golden capture: %w", err)
	}
	return c, nil
}
