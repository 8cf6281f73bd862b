// Package seeds runs public benchmarks of time-series databases at the scale of this machine, on
// Promlake and VictoriaMetrics in one run: generators of our own make the data and the queries
// after the published descriptions, the same in each run.
package seeds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// Flags of the command.
type Flags struct {
	server.Flags `embed:""`

	Rows         []string      `sep:"none" help:"Measure only the benchmarks, or of these only the queries, whose names contain one of these texts (repeatable; upper and lower case are the same)."`
	List         bool          `help:"Print the benchmarks, their data and that of the originals, and end."`
	Scale        string        `default:"full" enum:"small,full" help:"How much data: for figures (full), or for a trial of a minute or two (small)."`
	Large        bool          `help:"Insert also ten times the series of the largest TSBS devops: a million. It takes gigabytes of memory."`
	Rounds       int           `short:"k" default:"5" help:"Warm rounds, if the benchmark does not say how many."`
	Settle       time.Duration `default:"5s" help:"Time after the load during which a server's processor time still counts as that of the load."`
	PromlakeArgs []string      `sep:"none" help:"Additional arguments of promlake serve (repeatable)."`
	Data         string        `type:"path" help:"Folder for the servers' data, which later runs of the same scale reuse (default: a temporary folder)."`
	JSON         bool          `name:"json" help:"Print JSON instead of the table."`
}

// benchmark is a published benchmark at a scale.
type benchmark struct {
	name     string
	original string // the data of the published one
	set      *query.Set
	rounds   int                // 0: Flags.Rounds
	read     map[string]float64 // samples that a query reads, if rates are wanted
}

// report is a whole run.
type report struct {
	Rows  []table.Comparison `json:"rows"`
	Rates []rate             `json:"rates,omitempty"`
}

// Run runs the benchmarks and prints the table.
func (f *Flags) Run(ctx context.Context) error {
	if len(f.Only) > 0 && !slices.Contains(f.Only, server.Promlake) {
		return fmt.Errorf("only %v: every row is one of %s", f.Only, server.Promlake)
	}
	chosen := f.chosen(f.benchmarks())
	if len(chosen) == 0 {
		return fmt.Errorf("no benchmark or query contains one of %q", f.Rows)
	}
	if f.List {
		for _, b := range chosen {
			fmt.Println(b)
		}
		return nil
	}
	r, err := f.measure(ctx, chosen)
	if err != nil {
		return err
	}
	if f.JSON {
		return table.WriteJSON(os.Stdout, r)
	}
	return table.Write(os.Stdout, r.tables()...)
}

func (b benchmark) String() string {
	return fmt.Sprintf("%s (%s; %d queries; the original has %s)", b.name, b.set.Name, len(b.set.Questions), b.original)
}

// benchmarks are all at the chosen scale.
func (f *Flags) benchmarks() []benchmark {
	s := scales[f.Scale]
	all := []benchmark{
		{
			name: "TSBS cpu-only", original: "4,000 hosts × 25,920 samples",
			set: CPUOnly(s.hosts, s.span),
		},
		{
			name: "TStorage", original: "data of TSBS cpu-only",
			set: TStorage(s.hosts, s.span), rounds: 1,
		},
	}
	series := s.series
	if f.Large {
		series = append(slices.Clone(series), 10*series[len(series)-1])
	}
	for _, n := range series {
		all = append(all, benchmark{
			name: fmt.Sprintf("TSBS devops, %s series", table.Count(int64(n))), original: "4,000 hosts × 25,920 samples",
			set: Devops(n, max(s.samples/n, fewest)),
		})
	}
	set, read := billy(s.sensors, s.days)
	return append(all, benchmark{name: "Billy", original: "a million sensors × 525,600 samples", set: set, read: read})
}

// fewest samples of a series are two of its requests.
const fewest = 12

// scales are how much data the benchmarks have.
var scales = map[string]struct {
	hosts int // of cpu-only, for a span
	span  time.Duration

	series  []int // of devops, about
	samples int   // of all series together, if they have the fewest at least

	sensors, days int // of Billy
}{
	"small": {hosts: 10, span: 13 * time.Hour, series: []int{1000, 2000}, samples: 50_000, sensors: 80, days: 2},
	"full":  {hosts: 400, span: 24 * time.Hour, series: []int{10_000, 100_000}, samples: 10_800_000, sensors: 8000, days: 3},
}

// chosen are the benchmarks, with the queries, that are wanted.
func (f *Flags) chosen(all []benchmark) (out []benchmark) {
	for _, b := range all {
		if !table.Named(f.Rows, b.name) {
			set := *b.set
			set.Questions = slices.DeleteFunc(slices.Clone(set.Questions), func(q query.Question) bool { return !table.Named(f.Rows, q.Name) })
			if b.set = &set; len(set.Questions) == 0 {
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

// measure runs the benchmarks one after the other. Those of the same data load it once.
func (f *Flags) measure(ctx context.Context, chosen []benchmark) (r report, err error) {
	dir := f.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bench-seeds-"); err != nil {
			return r, fmt.Errorf("make folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	flags := query.Flags{Flags: f.Flags, Settle: f.Settle, PromlakeArgs: f.PromlakeArgs}
	if len(flags.Only) == 0 {
		flags.Only = []string{server.Promlake, server.VictoriaMetrics}
	}
	seen := map[[2]string]bool{} // names and units
	for i, b := range chosen {
		fmt.Fprintf(os.Stderr, "bench: %d of %d: %s\n", i+1, len(chosen), b)
		flags.Data, flags.Rounds = filepath.Join(dir, folder(b.set.Name)), f.Rounds
		if b.rounds > 0 {
			flags.Rounds = b.rounds
		}
		begin := time.Now()
		rows, err := flags.CompareSet(ctx, b.set)
		if err != nil {
			return r, fmt.Errorf("measure %s: %w", b.name, err)
		}
		fmt.Fprintf(os.Stderr, "bench: measured %s in %.0f s\n", b.name, time.Since(begin).Seconds())
		var kept []table.Comparison
		for _, c := range rows {
			id := [2]string{c.Name, c.Unit}
			if !seen[id] && (table.Named(f.Rows, b.name) || table.Named(f.Rows, c.Name)) {
				kept = append(kept, c)
			}
			seen[id] = true
		}
		r.Rows, r.Rates = append(r.Rows, kept...), append(r.Rates, rates(b.set.Name, kept, b.read)...)
	}
	return r, nil
}

// folder is a name of a data set as one of a folder.
func folder(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }), "-")
}

// tables are that of the rows, and that of the rates if there are any.
func (r report) tables() [][][]string {
	all := [][][]string{table.Comparisons(r.Rows)}
	if len(r.Rates) > 0 {
		all = append(all, rateRows(r.Rates))
	}
	return all
}
