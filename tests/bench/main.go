// Command bench measures the whole system, beside its peers where there are any.
//
// The path of a sample: capture (recorded scrapes) → fleet (the same scrapes as N virtual hosts) →
// wire (remote_write bodies) → load (senders, clocks, accounting) → server (a program started for
// the run). Each command has a package: ingest, storage, query (also live), growth, small,
// dashboard, seeds, rules, cost, imports, load.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/promlake/promlake/tests/bench/all"
	"github.com/promlake/promlake/tests/bench/cost"
	"github.com/promlake/promlake/tests/bench/dashboard"
	"github.com/promlake/promlake/tests/bench/growth"
	"github.com/promlake/promlake/tests/bench/imports"
	"github.com/promlake/promlake/tests/bench/ingest"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/rules"
	"github.com/promlake/promlake/tests/bench/seeds"
	"github.com/promlake/promlake/tests/bench/small"
	"github.com/promlake/promlake/tests/bench/storage"
)

type cli struct {
	All       all.Flags       `cmd:"" help:"Run the other benchmarks beside VictoriaMetrics, print one table, and draw it."`
	Ingest    ingest.Flags    `cmd:"" help:"Compare how Promlake and its peers ingest equal remote_write traffic."`
	Storage   storage.Flags   `cmd:"" help:"Compare the size and the compaction of a day of samples in Promlake and VictoriaMetrics."`
	Query     query.Flags     `cmd:"" help:"Compare how fast Promlake and its peers answer PromQL, cold and warm."`
	Live      query.Live      `cmd:"" help:"Compare everyday queries of an hour of scrapes that have just arrived one by one."`
	Seeds     seeds.Flags     `cmd:"" help:"Run public benchmarks at the scale of this machine on Promlake and VictoriaMetrics."`
	Rules     rules.Flags     `cmd:"" help:"Compare what scraping and rules cost in Promlake and Prometheus with one configuration."`
	Cost      cost.Flags      `cmd:"" help:"Measure the processor time, store requests and bytes of ingestion and compaction."`
	Growth    growth.Flags    `cmd:"" help:"Compare what samples and small queries cost as the number of series grows."`
	Dashboard dashboard.Flags `cmd:"" help:"Count the requests to the store that a dashboard makes, over a directory and over a bucket."`
	Small     small.Flags     `cmd:"" help:"Compare what a server costs that gets few samples."`
	Import    imports.Flags   `cmd:"" help:"Measure the import of a Prometheus TSDB, kill it, and compare samples and answers with the source."`
	Load      load.Flags      `cmd:"" help:"Send scrapes of many virtual hosts to a running server by remote_write."`
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	k := kong.Parse(&cli{}, kong.Description("Benchmarks of the whole system."), kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}
