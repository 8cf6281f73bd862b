// Command query-fn is the query stage as a process of its own: PromQL over the segments of a store. It reads the same
// PROMLAKE_* variables and flags as `promlake serve`; any number of them may read one store.
package main

import (
	"context"
	"os"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/telemetry"
)

const (
	program     = "query-fn"
	description = "Promlake's query stage: answers the Prometheus HTTP API from the segments in the store."
)

// cli is the grammar of the command line; its fields hold the defaults.
type cli struct {
	Process process.Settings `embed:"" group:"Process"`
	Query   queryapp.Flags   `embed:"" group:"Query"`
}

func newCLI() *cli {
	return &cli{Process: process.DefaultSettings(), Query: queryapp.NewFlags()}
}

// Run serves the stage until ctx ends.
func (c *cli) Run(ctx context.Context, io flags.Streams, vs flags.Values) error {
	logger, err := telemetry.NewLogger(io.Err, c.Process.Log)
	if err != nil {
		return err
	}
	return process.Run(ctx, c.Process, logger, queryapp.New(c.Query.Settings(vs)))
}

func main() {
	io := flags.Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(flags.Main(context.Background(), program, description, newCLI(), os.Args[1:], io))
}
