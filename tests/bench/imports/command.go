// Package imports writes a Prometheus TSDB, imports it with promlake import, and measures that. It
// imports it again with a process that is killed again and again, and compares the stores with the
// source: sample by sample, and by the answers to random queries.
package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/table"
)

// Flags of the command.
type Flags struct {
	ServerBin    string        `default:"bin/promlake" help:"Promlake's binary."`
	Capture      string        `type:"existingfile" help:"Replay this capture (plain, .gz, .zst or .xz) instead of the golden one, which is short."`
	Hosts        int           `default:"20" help:"Number of hosts, each with the series of the capture: 507 in the golden one."`
	Rounds       int           `default:"5000" help:"Samples of each series."`
	Interval     time.Duration `default:"1m" help:"Time between two samples of a series."`
	Kills        int           `default:"0" help:"Import again into another store, with a process that is killed this often."`
	Queries      int           `default:"0" help:"Random PromQL queries whose answers are compared with upstream's engine over the source."`
	Seed         uint64        `default:"1" help:"Seed of the queries and of the times of kills."`
	PromlakeArgs []string      `sep:"none" help:"Additional arguments of promlake import tsdb (repeatable)."`
	WorkDir      string        `type:"path" help:"Parent of the folders of the source and the stores (default: the system's temporary folder)."`
	Keep         bool          `help:"Keep these folders and print their path."`
}

var errDifferent = errors.New("answers differ; see above")

// result is what was measured.
type result struct {
	source *source
	usage  usage
	held   held
	kills  int
	killed time.Duration // processor time of all processes of the import that was killed
	asked  asked
}

// Run writes the source, imports it, compares and prints the table.
func (f *Flags) Run(ctx context.Context) error {
	r, err := f.measure(ctx)
	if err != nil {
		return err
	}
	return r.publish(os.Stdout)
}

func (f *Flags) measure(ctx context.Context) (r *result, err error) {
	if f.Hosts < 1 || f.Rounds < 3 || f.Interval < time.Second || f.Interval > time.Hour || f.Kills < 0 || f.Queries < 0 {
		return nil, fmt.Errorf("%d hosts, %d rounds every %s, %d kills, %d queries: want a host, three rounds, an interval from a second to an hour, and no negative number",
			f.Hosts, f.Rounds, f.Interval, f.Kills, f.Queries)
	}
	c, err := capture.Open(f.Capture)
	if err != nil {
		return nil, err
	}
	replay, err := fleet.NewReplay(c, fleet.ReplaySettings{Hosts: f.Hosts, Rounds: f.Rounds + 1, Start: start, Interval: f.Interval, Vary: true})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(f.WorkDir, "bench-import-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() {
		if f.Keep {
			note("the files stay in %s", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	r = &result{source: newSource(filepath.Join(dir, "source"), replay, f.Rounds)}
	return r, f.prove(ctx, r, dir)
}

// prove imports the source and compares the stores with it.
func (f *Flags) prove(ctx context.Context, r *result, dir string) error {
	s := r.source
	note("writing %d series with %d samples each", len(s.series), f.Rounds)
	if err := s.write(ctx); err != nil {
		return err
	}
	whole, err := f.target(dir, "whole", s)
	if err != nil {
		return err
	}
	note("importing %s", s.content)
	if r.usage, _, err = whole.run(ctx, never); err != nil {
		return err
	}
	store, err := filestore.New(whole.store())
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if r.held, err = read(ctx, store); err != nil {
		return err
	}
	if err := r.held.compare(s); err != nil {
		return err
	}
	if f.Kills > 0 {
		if err := f.kill(ctx, r, whole, dir); err != nil {
			return err
		}
	}
	note("asking %d queries", f.Queries)
	r.asked, err = s.ask(ctx, store, f.Seed, f.Queries, func(text string) { note("different answers: %s", text) })
	return err
}

// target makes the folder of a store.
func (f *Flags) target(dir, name string, s *source) (target, error) {
	binary, err := filepath.Abs(f.ServerBin)
	if err != nil {
		return target{}, fmt.Errorf("resolve %s: %w", f.ServerBin, err)
	}
	t := target{binary: binary, source: s.dir, dir: filepath.Join(dir, name), args: f.PromlakeArgs}
	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return t, fmt.Errorf("make folder: %w", err)
	}
	return t, nil
}

// kill imports into another store, and kills the process when the store has a random number of
// files and then some random time has passed. The last process ends by itself.
func (f *Flags) kill(ctx context.Context, r *result, whole target, dir string) error {
	t, err := f.target(dir, "killed", r.source)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(f.Seed, 2))
	all := files(whole.store())
	for ended := false; !ended; {
		stop := never
		if r.kills < f.Kills {
			at := int(float64(all) * (float64(r.kills) + rng.Float64()) / float64(f.Kills+1))
			wait := time.Duration(rng.Float64() * float64(r.usage.Elapsed) / float64(2*f.Kills))
			var reached time.Time
			stop = func() bool {
				if reached.IsZero() && files(t.store()) >= at {
					reached = time.Now()
				}
				return !reached.IsZero() && time.Since(reached) >= wait
			}
		}
		var u usage
		if u, ended, err = t.run(ctx, stop); err != nil {
			return err
		}
		r.killed += u.CPU
		if !ended {
			r.kills++
			note("kill %d after %s, with %d files in the store", r.kills, u.Elapsed.Round(time.Millisecond), files(t.store()))
		}
	}
	store, err := filestore.New(t.store())
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	h, err := read(ctx, store)
	if err != nil {
		return err
	}
	if err := h.compare(r.source); err != nil {
		return fmt.Errorf("after %d kills: %w", r.kills, err)
	}
	return nil
}

// publish prints the table. It returns an error if answers differ.
func (r *result) publish(w io.Writer) error {
	s := r.source
	samples := float64(s.content.Samples)
	rows := [][]string{
		{"measured", "value"},
		{"source: series", fmt.Sprint(len(s.series))},
		{"source: distinct samples", fmt.Sprint(s.content.Samples)},
		{"source: blocks", fmt.Sprint(s.Blocks)},
		{"source: bytes/sample", fmt.Sprintf("%.3f", float64(s.Bytes)/samples)},
		{"import: elapsed, s", fmt.Sprintf("%.1f", r.usage.Elapsed.Seconds())},
		{"import: CPU-s", fmt.Sprintf("%.2f", r.usage.CPU.Seconds())},
		{"import: samples per CPU-s, millions", fmt.Sprintf("%.2f", samples/r.usage.CPU.Seconds()/1e6)},
		{"import: peak RSS, MB", fmt.Sprintf("%.0f", float64(r.usage.PeakRSS)/1e6)},
		{"import: blocks", fmt.Sprint(r.held.blocks)},
		{"import: bytes/sample", fmt.Sprintf("%.3f", float64(r.held.bytes)/samples)},
		{"import: samples missing or twice", "0"}, // otherwise there is no table
	}
	if r.killed > 0 {
		rows = append(rows,
			[]string{"killed import: kills", fmt.Sprint(r.kills)},
			[]string{"killed import: CPU-s of all processes", fmt.Sprintf("%.2f", r.killed.Seconds())},
			[]string{"killed import: samples missing or twice", "0"})
	}
	if r.asked.Questions > 0 {
		rows = append(rows,
			[]string{"queries", fmt.Sprint(r.asked.Questions)},
			[]string{"queries with an answer", fmt.Sprint(r.asked.Answers)},
			[]string{"queries whose answers differ", fmt.Sprint(r.asked.Different)})
	}
	if err := table.Write(w, rows); err != nil {
		return err
	}
	if r.asked.Different > 0 {
		return errDifferent
	}
	return nil
}

func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}
