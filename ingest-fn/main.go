// Command ingest-fn runs the ingest stage as a separate process or as an AWS Lambda function: it
// writes remote_write requests to segments. It reads the same PROMLAKE_* variables and flags as
// `promlake serve`. Several instances may write to one store.
package main

import (
	"context"
	"os"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/ingest"
)

const (
	program     = "ingest-fn"
	description = "Promlake's ingest stage: takes remote_write requests and writes segments to the store."
)

// cli is the grammar of the command line.
type cli struct {
	Process process.Settings `embed:"" group:"Process"`
	Ingest  ingest.Settings  `embed:"" group:"Ingest"`
	Lambda  lambda.Settings  `embed:"" group:"AWS Lambda"`

	Redriving ingestapp.Redriving `embed:"" group:"Ingest"`
}

func newCLI() *cli {
	c := settings.Default[cli]()
	c.Process = process.SettingsOf(program)
	return &c
}

// Run serves the stage until ctx, or the function's environment, ends.
func (c *cli) Run(ctx context.Context, io flags.Streams, vs flags.Values) error {
	c.Process.Flags = vs
	return process.Serve(ctx, c.Process, c.Lambda, io.Err, ingestapp.New(nil, c.Ingest), ingestapp.OnCommand(c.Redriving, c.Ingest.QueueURL))
}

func main() {
	io := flags.Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(flags.Main(context.Background(), program, description, newCLI(), os.Args[1:], io))
}
