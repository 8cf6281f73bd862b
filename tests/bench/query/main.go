// Command query builds 20 million samples and a long history in Promlake, VictoriaMetrics and Prometheus and compares how long each takes to
// answer the same PromQL, cold and warm, and what that costs in memory and processor time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

var errFailed = errors.New("a question failed or its answers differ; see above")

type flags struct {
	ServerBin    string        `default:"bin/promlake" help:"Promlake's binary."`
	PeersDir     string        `default:".cache/peers" help:"Folder with the peers, as fetch-peers.sh leaves it."`
	Only         []string      `enum:"promlake,victoria-metrics,prometheus" help:"Run only these servers (promlake, victoria-metrics, prometheus)."`
	Segments     bool          `help:"Ask Promlake over segments that nothing has compacted, too."`
	Series       int           `default:"10000" help:"Series of the metric m; others add 30 percent."`
	Samples      int           `default:"20000000" help:"Samples of the metric m, 15 s apart in each series."`
	History      time.Duration `default:"2160h" help:"Span of the long history: 20 series of a sample a minute."`
	Rounds       int           `short:"k" default:"7" help:"Warm rounds (0 = none)."`
	Cold         bool          `default:"true" negatable:"" help:"Ask every question after a restart, too."`
	Questions    []string      `help:"Ask only the questions that contain one of these texts."`
	PromlakeArgs []string      `sep:"none" help:"Further arguments of promlake serve (repeatable)."`
	Data         string        `type:"path" help:"Folder for the servers' data, which stays and is used again by a later run of the same scale (default: a temporary one)."`
	JSON         bool          `name:"json" help:"Print JSON instead of the tables."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Description("Compares how fast Promlake and its peers answer PromQL."), kong.UsageOnError())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "bench-query:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) (err error) {
	s, err := f.scale()
	if err != nil {
		return err
	}
	dir := f.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "bench-query-"); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("resolve %s: %w", dir, err)
	}
	targets := f.installed(f.targets(dir))
	if len(targets) == 0 {
		return errors.New("no server to run; build bin/promlake or fetch the peers with make bench-peers")
	}
	r, err := f.measure(ctx, s, targets)
	if err != nil {
		return err
	}
	return r.publish(os.Stdout, f.JSON)
}

// measure has every target hold the data, and asks them.
func (f flags) measure(ctx context.Context, s scale, targets []target) (*report, error) {
	r := &report{Scale: s}
	for _, q := range s.questions() {
		if len(f.Questions) == 0 || slices.ContainsFunc(f.Questions, func(part string) bool { return strings.Contains(q.name(), part) }) {
			r.Questions = append(r.Questions, q)
		}
	}
	if len(r.Questions) == 0 {
		return nil, fmt.Errorf("no question contains one of %q", f.Questions)
	}
	for _, t := range targets {
		p, err := t.prepare(ctx, f, s)
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", t.name, err)
		}
		note("%s holds %d samples, %.1f MB on disk, after %.0f s", t.name, p.Samples, float64(p.Disk)/1e6, p.Took.Seconds())
		r.Targets = append(r.Targets, t.name)
		r.Prepared = append(r.Prepared, p)
	}
	r.Cells = newCells(len(r.Questions), len(targets))
	if f.Cold {
		if err := r.Cells.cold(ctx, targets, r.Questions); err != nil {
			return nil, err
		}
	}
	if f.Rounds > 0 {
		var err error
		if r.PeakRSS, err = r.Cells.warm(ctx, targets, r.Questions, f.Rounds); err != nil {
			return nil, err
		}
	}
	r.Cells.check(targets, r.Questions)
	return r, nil
}

func (f flags) scale() (scale, error) {
	s := scale{Series: f.Series, History: f.History}
	if f.Series < 1 || f.Samples/f.Series < 4 || f.Rounds < 0 {
		return s, fmt.Errorf("%d samples of %d series in %d rounds: want at least one series, a minute of samples, and no fewer than 0 rounds", f.Samples, f.Series, f.Rounds)
	}
	s.Samples = f.Samples / f.Series
	if main := s.end().Sub(start); f.History < main || f.History%time.Minute != 0 {
		return s, fmt.Errorf("history of %s: want whole minutes, and at least the %s of the main data", f.History, main)
	}
	return s, nil
}

// installed returns the targets that are asked for and there, and says which are not.
func (f flags) installed(all []target) (there []target) {
	for _, t := range all {
		if len(f.Only) > 0 && !slices.Contains(f.Only, t.ask.Name) {
			continue
		}
		if err := t.ask.Installed(); err != nil {
			note("skipped: %v", err)
			continue
		}
		there = append(there, t)
	}
	return there
}
