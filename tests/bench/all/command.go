// Package all runs the other benchmarks beside VictoriaMetrics, prints one table, and draws it.
package all

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/promlake/promlake/tests/bench/growth"
	"github.com/promlake/promlake/tests/bench/ingest"
	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/storage"
	"github.com/promlake/promlake/tests/bench/table"
	"github.com/promlake/promlake/tests/bench/wire"
)

// Flags of the command.
type Flags struct {
	server.Flags `embed:""`

	Large bool   `help:"Measure growth up to five million series, instead of one. It takes gigabytes of memory."`
	SVG   string `name:"svg" type:"path" help:"Write the drawing to this file."`
	JSON  bool   `name:"json" help:"Print JSON instead of the table."`
}

// step is one of the benchmarks.
type step struct {
	name string
	run  func(context.Context) ([]table.Comparison, error)
}

// Run runs the benchmarks and prints the table.
func (f *Flags) Run(ctx context.Context) error {
	var all []table.Comparison
	for _, s := range f.steps() {
		fmt.Fprintln(os.Stderr, "bench: measure", s.name)
		rows, err := s.run(ctx)
		if err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
		all = append(all, rows...)
	}
	if f.SVG != "" {
		if err := os.WriteFile(f.SVG, []byte(draw(all)), 0o644); err != nil {
			return fmt.Errorf("write drawing: %w", err)
		}
	}
	if f.JSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", " ")
		return enc.Encode(all)
	}
	return table.Write(os.Stdout, table.Comparisons(all))
}

// load is a load of ingestion: hosts of 507 series, their scrapes, and samples in a request.
type load struct {
	name                  string
	hosts, scrapes, batch int
	protocol              wire.Version
}

func loads() []load {
	out := []load{
		{"10,140 series × 500 samples", 20, 500, 2000, wire.V1},
		{"101,400 series × 60 samples", 200, 60, 2000, wire.V1},
		{"101,400 series × 60 samples, 10,000 in a request", 200, 60, 10_000, wire.V1},
		{"1,014,000 series × 6 samples, 10,000 in a request", 2000, 6, 10_000, wire.V1},
	}
	for v := wire.V1; v.Valid(); v++ {
		if v != wire.V2 { // Promlake's peers have only version 1
			out = append(out, load{"101,400 series × 20 samples, protocol " + v.String(), 200, 20, 2000, v})
		}
	}
	return out
}

// longest bounds a load, which ends after its scrapes.
const longest = time.Hour

func (f *Flags) steps() (out []step) {
	servers := f.Flags
	if len(servers.Only) == 0 {
		servers.Only = []string{server.Promlake, server.VictoriaMetrics}
	}
	for _, l := range loads() {
		flags := ingest.Flags{
			Flags: servers, Repeat: 1, Hosts: l.hosts, Scrapes: l.scrapes, Batch: l.batch, Duration: longest, Concurrency: 4, Protocol: l.protocol.String(), Settle: 5 * time.Second,
		}
		out = append(out, step{l.name, func(ctx context.Context) ([]table.Comparison, error) { return flags.Compare(ctx, l.name) }})
	}
	day := storage.Flags{Flags: servers, Hosts: 4, Span: 24 * time.Hour, Interval: 10 * time.Second, Vary: true}
	queries := query.Flags{Flags: servers, Series: 10_000, Samples: 20_000_000, History: 90 * 24 * time.Hour, Rounds: 5, Cold: true, Mix: 20 * time.Second}
	sizes := growth.Flags{Flags: servers, Series: []int{100_000, 1_000_000}, Rounds: 12, Batch: 10_000, Churn: 0.01, Queries: 20, Settle: 5 * time.Second}
	if f.Large {
		sizes.Series = append(sizes.Series, 5_000_000)
	}
	return append(out, step{"storage", day.Compare}, step{"queries", queries.Compare}, step{"growth", sizes.Compare})
}
