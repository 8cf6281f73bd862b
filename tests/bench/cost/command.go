// Package cost measures the costs of a sample from its request to its block: processor time,
// requests to the store and bytes. The constants of internal/aws/cost come from it.
//
// It runs the stages in this process as functions run them: one request after another, and a
// compaction cycle for every minute of the samples' time. It uses no network.
package cost

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
)

// Flags of the command.
type Flags struct {
	Mode     string        `default:"direct" enum:"direct,buffered" help:"One segment for each request (direct), or for each batch of messages (buffered)."`
	Capture  string        `type:"existingfile" help:"Recording of a node_exporter to replay (default: the golden one of twenty scrapes)."`
	Hosts    int           `default:"20" help:"Number of virtual hosts, of 507 series each."`
	Batch    int           `default:"10000" help:"Samples in a request."`
	Messages int           `default:"10" help:"Messages of a batch, in mode buffered."`
	Interval time.Duration `default:"15s" help:"Time between two scrapes."`
	Span     time.Duration `default:"2h" help:"Span of the samples, from midnight on."`
	Dir      string        `type:"path" help:"Folder of the store (default: a temporary folder, removed at the end)."`
}

// Run measures and prints the report as JSON.
func (f *Flags) Run(ctx context.Context) error {
	c, err := capture.Open(f.Capture)
	if err != nil {
		return err
	}
	hosts, err := fleet.New(c, f.Hosts)
	if err != nil {
		return fmt.Errorf("make hosts: %w", err)
	}
	if f.Dir == "" {
		if f.Dir, err = os.MkdirTemp("", "bench-cost-"); err != nil {
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
