// Package all runs the other benchmarks beside VictoriaMetrics, prints one table, and draws it.
package all

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/promlake/promlake/tests/bench/gateway"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// Flags of the command.
type Flags struct {
	server.Flags    `embed:""`
	gateway.Program `embed:""`

	Rows        []string      `sep:"none" help:"Measure only the rows that contain one of these texts (repeatable; upper and lower case are the same)."`
	List        bool          `help:"Print the names of what would be measured, and end."`
	Large       bool          `help:"Measure growth up to five million series, instead of one. It takes gigabytes of memory."`
	SmallServer time.Duration `default:"3m" help:"How long the small server gets samples."`
	SVG         string        `name:"svg" type:"path" help:"Write the drawing to this file if all rows are measured."`
	History     string        `type:"path" help:"Append the ratios to this CSV file if all rows are measured."`
	JSON        bool          `name:"json" help:"Print JSON instead of the table."`
}

// Run runs the benchmarks and prints the table.
func (f *Flags) Run(ctx context.Context) error {
	if len(f.Only) > 0 && !slices.Contains(f.Only, server.Promlake) {
		return fmt.Errorf("only %v: every row is one of %s", f.Only, server.Promlake)
	}
	steps := f.chosen(f.steps(full()))
	if len(steps) == 0 {
		return fmt.Errorf("no row contains one of %q", f.Rows)
	}
	if f.List {
		for _, s := range steps {
			fmt.Println(s.name)
		}
		return nil
	}
	all, err := f.measure(ctx, steps)
	if err != nil {
		return err
	}
	if f.SVG != "" && len(f.Rows) == 0 {
		if err := os.WriteFile(f.SVG, []byte(draw(all)), 0o644); err != nil {
			return fmt.Errorf("write drawing: %w", err)
		}
	}
	if f.History != "" && len(f.Rows) == 0 {
		version, err := exec.CommandContext(ctx, f.ServerBin, "version").Output() // promlake VERSION (…)
		words := strings.Fields(string(version))
		if err != nil || len(words) < 2 {
			return fmt.Errorf("ask Promlake's version: %q, %v", version, err)
		}
		if err := record(f.History, words[1], time.Now(), all); err != nil {
			return err
		}
	}
	if f.JSON {
		return table.WriteJSON(os.Stdout, all)
	}
	return table.Write(os.Stdout, table.Comparisons(all))
}

// measure runs the steps one after the other, and returns the rows that are wanted of each.
func (f *Flags) measure(ctx context.Context, steps []step) (all []table.Comparison, err error) {
	for i, s := range steps {
		fmt.Fprintf(os.Stderr, "bench: %d of %d: measure %s\n", i+1, len(steps), s.name)
		begin := time.Now()
		rows, err := s.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", s.name, err)
		}
		fmt.Fprintf(os.Stderr, "bench: measured %s in %.0f s\n", s.name, time.Since(begin).Seconds())
		if err := s.set(rows); err != nil {
			return nil, err
		}
		for _, r := range rows {
			if table.Named(f.Rows, s.name) || table.Named(f.Rows, r.Name) {
				all = append(all, r)
			}
		}
	}
	return all, nil
}
