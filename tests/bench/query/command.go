// Package query writes 20 million samples and a long history to Promlake, VictoriaMetrics and
// Prometheus, and compares the time, memory and processor time of the same PromQL, cold and warm.
package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/promlake/promlake/tests/bench/gateway"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

var errFailed = errors.New("a question failed or its answers differ; see above")

// Flags of the command.
type Flags struct {
	server.Flags    `embed:""`
	gateway.Program `embed:""`

	Set          string        `name:"data-set" default:"mixed" enum:"mixed,hosts" help:"Data and queries: many kinds of metrics and queries (mixed), or small queries of the scrapes of node_exporters (hosts)."`
	Hosts        int           `default:"100" help:"Hosts of the data set hosts, of 507 series each."`
	Span         time.Duration `default:"8h" help:"Span of the data set hosts, a sample each 15 s."`
	Segments     bool          `help:"Measure also Promlake without compaction, over segments only."`
	Series       int           `default:"10000" help:"Series of the metric m of the data set mixed; other metrics add 30 percent."`
	Samples      int           `default:"20000000" help:"Samples of the metric m, 15 s apart in each series."`
	History      time.Duration `default:"2160h" help:"Span of the long history: 20 series of a sample a minute."`
	Rounds       int           `short:"k" default:"7" help:"Warm rounds (0 = none)."`
	Cold         bool          `default:"true" negatable:"" help:"Measure also each question as the first one after a restart."`
	Bucket       bool          `help:"Copy Promlake's data into a bucket, and send each question as the first one there, too, with 0, 5 and 30 ms more for each request."`
	Mix          time.Duration `default:"20s" help:"How long 8 clients send small dashboard queries to each server (0 = not at all; only with the data set mixed)."`
	Settle       time.Duration `default:"5s" help:"Time after the load during which a server's processor time still counts as that of the load."`
	Questions    []string      `help:"Ask only the questions that contain one of these texts."`
	PromlakeArgs []string      `sep:"none" help:"Additional arguments of promlake serve (repeatable)."`
	Data         string        `type:"path" help:"Folder for the servers' data, which later runs of the same scale reuse (default: a temporary folder)."`
	JSON         bool          `name:"json" help:"Print JSON instead of the tables."`
}

// Run prepares the servers, measures them and prints the tables.
func (f *Flags) Run(ctx context.Context) error {
	s, err := f.scale()
	if err != nil {
		return err
	}
	r, err := f.measureAll(ctx, s)
	if err != nil {
		return err
	}
	return r.publish(os.Stdout, f.JSON)
}

// Compare prepares Promlake and VictoriaMetrics and measures their queries.
func (f *Flags) Compare(ctx context.Context) ([]table.Comparison, error) {
	s, err := f.scale()
	if err != nil {
		return nil, err
	}
	return f.compare(ctx, s)
}

// CompareSet does the same with a data set that another benchmark describes.
func (f *Flags) CompareSet(ctx context.Context, d *Set) ([]table.Comparison, error) {
	return f.compare(ctx, scale{Set: d.Name, Samples: d.Samples, described: d})
}

func (f *Flags) compare(ctx context.Context, s scale) ([]table.Comparison, error) {
	r, err := f.measureAll(ctx, s)
	if err != nil {
		return nil, err
	}
	return r.comparisons(), r.failures()
}

func (f *Flags) measureAll(ctx context.Context, s scale) (r *report, err error) {
	dir := f.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bench-query-"); err != nil {
			return nil, fmt.Errorf("make folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", dir, err)
	}
	targets, err := f.targets(dir)
	if err != nil {
		return nil, err
	}
	return f.measure(ctx, s, targets)
}

// measure prepares every target, then sends the questions.
func (f *Flags) measure(ctx context.Context, s scale, targets []target) (*report, error) {
	r := &report{Scale: s}
	for _, q := range s.questions() {
		if len(f.Questions) == 0 || slices.ContainsFunc(f.Questions, func(part string) bool { return strings.Contains(q.name(), part) }) {
			r.Questions = append(r.Questions, q)
		}
	}
	if len(r.Questions) == 0 && len(f.Questions) > 0 {
		return nil, fmt.Errorf("no question contains one of %q", f.Questions)
	}
	for _, t := range targets {
		p, err := t.prepare(ctx, f, s)
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", t.name, err)
		}
		note("%s holds %d samples, %.1f MB on disk, after %.0f s", t.name, p.Life.Samples, float64(p.Disk)/1e6, p.Took.Seconds())
		r.Targets = append(r.Targets, t.name)
		r.Prepared = append(r.Prepared, p)
	}
	r.Cells = newCells(len(r.Questions), len(targets))
	if f.Cold {
		if err := r.Cells.cold(ctx, targets, r.Questions); err != nil {
			return nil, err
		}
	}
	if f.Bucket {
		var err error
		if r.Trips, err = f.overBucket(ctx, targets, r.Questions); err != nil {
			return nil, err
		}
	}
	if f.Rounds > 0 && len(r.Questions) > 0 {
		var err error
		if r.PeakRSS, err = r.Cells.warm(ctx, targets, r.Questions, f.Rounds); err != nil {
			return nil, err
		}
	}
	r.Cells.check(targets, r.Questions)
	if f.Mix > 0 && s.Set == "" {
		var err error
		if r.Mix, err = runMix(ctx, targets, s, f.Mix); err != nil {
			return nil, err
		}
	}
	return r, nil
}
