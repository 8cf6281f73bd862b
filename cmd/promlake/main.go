// Command promlake is Promlake in one binary: the server, and the operator's tool.
package main

import (
	"context"
	"os"

	"github.com/promlake/promlake/internal/app/flags"
)

const (
	program     = "promlake"
	description = "Prometheus metrics in an object store, asked with PromQL. Every flag can be set by a variable: --store by PROMLAKE_STORE, --query.timeout by PROMLAKE_QUERY_TIMEOUT."
)

// cli is the grammar of the command line; its fields hold the defaults.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Serve writes and queries over one store."`
	Query   queryCmd   `cmd:"" help:"Ask one PromQL query of a store or of a server."`
	SQL     sqlCmd     `cmd:"" name:"sql" help:"Run SQL over local files in a DuckDB that has the functions of promlake query --explain."`
	Compact compactCmd `cmd:"" help:"Merge a store's segments and blocks into larger blocks."`
	Inspect inspectCmd `cmd:"" help:"Tell what a store holds and what the compactor would do next."`
	Copy    copyCmd    `cmd:"" help:"Copy a store that is in use: backup, restore, move."`
	Tenant  tenantCmd  `cmd:"" help:"List the tenants of a store, or remove one whole."`
	Doctor  doctorCmd  `cmd:"" help:"Find damaged objects in a store, and take them out of what counts."`
	Token   tokenCmd   `cmd:"" help:"Make a token for requests to a server."`
	Cost    costCmd    `cmd:"" help:"Estimate what a load costs on AWS."`
	Redrive redriveCmd `cmd:"" help:"Move dead letters of remote_write back to their queue, or tell what they are."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

func newCLI() *cli {
	return &cli{Serve: newServeCmd(), Query: newQueryCmd(), SQL: newSQLCmd(), Compact: newCompactCmd(), Inspect: newInspectCmd(), Copy: newCopyCmd(), Tenant: newTenantCmd(), Doctor: newDoctorCmd(), Cost: newCostCmd()}
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], flags.Streams{Out: os.Stdout, Err: os.Stderr}))
}

func run(ctx context.Context, args []string, io flags.Streams) int {
	return flags.Main(ctx, program, description, newCLI(), args, io)
}
