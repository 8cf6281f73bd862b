// Command compact-fn is the compaction stage as a process of its own: segments in, blocks out. A POST to /-/compact runs one cycle over all
// tenants, so that a scheduler decides when. It reads the same PROMLAKE_* variables and flags as `promlake serve`; several
// of them may compact one store.
package main

import (
	"context"
	"os"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/telemetry"
)

const (
	program     = "compact-fn"
	description = "Promlake's compaction stage: POST /-/compact runs one cycle over the store."
)

// cli is the grammar of the command line; its fields hold the defaults.
type cli struct {
	Process process.Settings `embed:"" group:"Process"`
	Compact compactapp.Flags `embed:"" group:"Compaction"`
}

func newCLI() *cli {
	return &cli{Process: process.DefaultSettings(), Compact: compactapp.NewFlags()}
}

// Run serves the stage until ctx ends.
func (c *cli) Run(ctx context.Context, io flags.Streams) error {
	logger, err := telemetry.NewLogger(io.Err, c.Process.Log)
	if err != nil {
		return err
	}
	return process.Run(ctx, c.Process, logger, compactapp.OnRequest(c.Compact.Settings()))
}

func main() {
	io := flags.Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(flags.Main(context.Background(), program, description, newCLI(), os.Args[1:], io))
}
