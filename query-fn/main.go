// Command query-fn runs the query stage as a separate process or as an AWS Lambda function: it
// evaluates PromQL over the objects of a store. It reads the same PROMLAKE_* variables and flags as
// `promlake serve`. Any number of instances may read one store.
package main

import (
	"context"
	"os"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/pageapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/lambda"
	"github.com/promlake/promlake/internal/settings"
)

const (
	program     = "query-fn"
	description = "Promlake's query stage: answers the Prometheus HTTP API from the segments in the store."
)

// cli is the grammar of the command line.
type cli struct {
	Process process.Settings  `embed:"" group:"Process"`
	Query   queryapp.Settings `embed:"" group:"Query"`
	Page    pageapp.Settings  `embed:"" group:"Page"`
	Lambda  lambda.Settings   `embed:"" group:"AWS Lambda"`
}

func newCLI() *cli {
	c := settings.Default[cli]()
	c.Process = process.SettingsOf(program)
	c.Process.CheckStore = false // it may have no right to write
	c.Lambda.Streaming = true    // answers outgrow Lambda's payloads, and the function's URL is there for them
	return &c
}

// Run serves the stage until ctx, or the function's environment, ends.
func (c *cli) Run(ctx context.Context, io flags.Streams, vs flags.Values) error {
	c.Process.Flags = vs
	if lambda.Running() {
		memory := lambda.MemoryBytes()
		c.Query = queryapp.ForFunction(c.Query, memory, vs)
		if c.Process.MemoryLimit == 0 {
			c.Process.MemoryLimit = queryapp.HeapBytes(c.Query.Query, memory)
		}
	}
	return process.Serve(ctx, c.Process, c.Lambda, io.Err, queryapp.New(c.Query), pageapp.New(c.Page))
}

func main() {
	io := flags.Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(flags.Main(context.Background(), program, description, newCLI(), os.Args[1:], io))
}
