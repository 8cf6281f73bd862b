// Command promlake is Promlake in one binary: the server, and the operator's tool.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
	_ "github.com/promlake/promlake/internal/store/objstore/cloudstore" // all stores
)

const (
	program     = "promlake"
	description = "Prometheus metrics in an object store, asked with PromQL. Every flag can be set by a variable, such as --query.timeout by PROMLAKE_QUERY_TIMEOUT, or in the file of --settings.file."
)

// cli is the grammar of the command line.
type cli struct {
	Serve      serveCmd      `cmd:"" help:"Serve writes and queries over one store."`
	Query      queryCmd      `cmd:"" help:"Ask one PromQL query of a store or of a server."`
	SQL        sqlCmd        `cmd:"" name:"sql" help:"Ask SQL queries of a server, of a store, or of local files."`
	Translate  translateCmd  `cmd:"" help:"Print a PromQL query as a SQL statement with the same rows."`
	Read       readCmd       `cmd:"" help:"Answer queries of a store on a Unix socket, for the program that starts this one, until the standard input ends."`
	Compact    compactCmd    `cmd:"" help:"Merge a store's segments and blocks into larger blocks."`
	Inspect    inspectCmd    `cmd:"" help:"Print what a store holds and what the compactor would do next."`
	Copy       copyCmd       `cmd:"" help:"Copy a store that is in use: backup, restore, move, replica."`
	Import     importCmd     `cmd:"" help:"Import the history of another system into a store."`
	Publish    publishCmd    `cmd:"" help:"Publish a store's blocks as Iceberg tables, which other engines read."`
	Export     exportCmd     `cmd:"" help:"Write samples as OpenMetrics, as blocks of Prometheus, as JSON lines, or as Parquet."`
	Tenant     tenantCmd     `cmd:"" help:"List the tenants of a store, or remove one whole."`
	Doctor     doctorCmd     `cmd:"" help:"Find damaged objects in a store, and quarantine them."`
	Config     configCmd     `cmd:"" help:"Print the settings of promlake serve and the source of each."`
	Check      checkCmd      `cmd:"" help:"Check the files of promlake serve --config.file, or that a server is ready."`
	Rules      rulesCmd      `cmd:"" help:"Test rules, and evaluate them over the past."`
	Token      tokenCmd      `cmd:"" help:"Make a token for requests to a server."`
	Cost       costCmd       `cmd:"" help:"Estimate what a load costs on AWS."`
	Redrive    redriveCmd    `cmd:"" help:"Move dead letters of remote_write back to their queue, or list them."`
	Completion completionCmd `cmd:"" help:"Print the script by which a shell completes commands and flags."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// newCLI returns the grammar with its defaults.
func newCLI() *cli {
	c := settings.Default[cli]()
	c.Serve.Settings, c.Config.Settings = app.DefaultSettings(), app.DefaultSettings()
	c.Compact.Compact, c.Inspect.Compact = compactapp.DefaultSettings(), compactapp.DefaultSettings()
	for _, log := range []*telemetry.LogSettings{&c.Query.Log, &c.Read.Log, &c.Inspect.Log, &c.Tenant.List.Log, &c.Tenant.Delete.Log, &c.Doctor.Log, &c.Export.Log, &c.Publish.Log, &c.Rules.Replay.Log, &c.Rules.Backfill.Log} {
		log.Level = "warn"
	}
	c.Cost.Load = cost.DefaultLoad()
	c.Cost.Load.Senders = 0
	return &c
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], flags.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

func run(ctx context.Context, args []string, io flags.Streams) int {
	return flags.Main(ctx, program, description, newCLI(), args, io)
}

type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(io flags.Streams) error {
	_, err := fmt.Fprintln(io.Out, telemetry.ReadBuild())
	return err
}
