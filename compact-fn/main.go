// Command compact-fn runs the compaction stage as a separate process or as an AWS Lambda function:
// it merges segments into blocks. A POST to /-/compact, or a schedule's event, runs one cycle over
// all tenants, or sends the cycle's jobs to a queue from which such functions receive them. It may
// also publish Iceberg tables. With --replica.store it keeps a replica instead. It reads the same
// PROMLAKE_* variables and flags as `promlake serve`. Several instances may compact one store.
package main

import (
	"context"
	"os"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/copyapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/settings"
)

const (
	program     = "compact-fn"
	description = "Promlake's compaction stage: POST /-/compact runs one cycle over the store."
)

// cli is the grammar of the command line.
type cli struct {
	Process process.Settings           `embed:"" group:"Process"`
	Compact compactapp.Settings        `embed:"" group:"Compaction"`
	Workers compactapp.Workers         `embed:"" group:"Compaction"`
	Publish compactapp.PublishSettings `embed:"" group:"Compaction"`
	Replica copyapp.Replica            `embed:"" group:"Replica"`
	Lambda  lambda.Settings            `embed:"" group:"AWS Lambda"`
}

func newCLI() *cli {
	c := settings.Default[cli]()
	c.Process, c.Compact = process.SettingsOf(program), compactapp.DefaultSettings()
	return &c
}

// Run serves the stage until ctx, or the function's environment, ends.
func (c *cli) Run(ctx context.Context, io flags.Streams, vs flags.Values) error {
	c.Process.Flags = vs
	if c.Process.Self.Enabled() {
		c.Compact.OwnTenant = c.Process.Self.Tenant
	}
	stages := []process.Builder{compactapp.OnRequest(c.Compact, c.Workers)}
	if c.Replica.Store != "" {
		stages = []process.Builder{copyapp.Replicate(c.Replica)}
	} else if c.Publish.Enabled {
		stages = append(stages, compactapp.Publish(c.Publish, c.Process.Store, c.Compact.DeletionDelay))
	}
	return process.Serve(ctx, c.Process, c.Lambda, io.Err, stages...)
}

func main() {
	io := flags.Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(flags.Main(context.Background(), program, description, newCLI(), os.Args[1:], io))
}
