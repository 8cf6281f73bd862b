package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
)

// run is the result of loading one server once.
type run struct {
	Server    string      `json:"server"`
	Report    load.Report `json:"report"`
	DiskBytes int64       `json:"disk_bytes"` // occupied after the server ended
	// with Flags.Compact: what stays, and what compaction cost Promlake
	Kept      disk.Files       `json:"kept_bytes,omitempty"`
	Compacted *disk.Compaction `json:"compacted,omitempty"`
	Error     string           `json:"error,omitempty"` // why the run is incomplete
}

// broken reports whether the run is incomplete or the server refused anything.
func (r run) broken() bool { return r.Error != "" || r.Report.RequestsFailed > 0 }

func (r run) String() string {
	if r.Error != "" {
		return fmt.Sprintf("%s: %s", r.Server, r.Error)
	}
	s := fmt.Sprintf("%s: %.0f samples/s, p99 %.1f ms", r.Server, r.Report.SamplesPerSecond, r.Report.Latency.P99)
	if u := r.Report.Server; u != nil {
		s += fmt.Sprintf(", %.3f CPU-s per million samples, peak RSS %.1f MB", u.CPUPerMillion, float64(u.PeakRSSBytes)/1e6)
	}
	s += fmt.Sprintf(", %.1f MB on disk, %d requests failed", float64(r.DiskBytes)/1e6, r.Report.RequestsFailed)
	for _, kind := range slices.Sorted(maps.Keys(r.Report.Messages)) {
		s += fmt.Sprintf(" (%s: %s)", kind, r.Report.Messages[kind])
	}
	return s
}

// schedule returns the servers times times, rotated by one each time, so that each runs first
// equally often.
func schedule(specs []server.Spec, times int) []server.Spec {
	var order []server.Spec
	for i := range times {
		turn := i % len(specs)
		order = append(order, specs[turn:]...)
		order = append(order, specs[:turn]...)
	}
	return order
}

// once starts a server in a fresh folder, loads it, stops it, compacts what it stored if that is
// wanted, and measures its folder. The folder is removed unless something failed.
func (f *Flags) once(ctx context.Context, spec server.Spec, hosts *fleet.Fleet, s load.Settings) (r run, err error) {
	r.Server = spec.Name
	dir, err := os.MkdirTemp(f.WorkDir, "bench-"+spec.Name+"-")
	if err != nil {
		return r, fmt.Errorf("make folder: %w", err)
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		} else {
			err = fmt.Errorf("%w (its files are kept in %s)", err, dir)
		}
	}()
	if f.Compact {
		spec = alone(spec)
	}
	if f.BucketDelay > 0 {
		g, failed := f.Start(ctx, filepath.Join(dir, "gateway"))
		if failed != nil {
			return r, failed
		}
		defer func() { err = errors.Join(err, g.Stop()) }()
		g.Delay(f.BucketDelay)
		spec = spec.Over(g.URL())
	}
	p, err := server.Start(ctx, spec, dir)
	if err != nil {
		return r, err
	}
	s.URL, s.PID = p.WriteURL(), p.PID()
	r.Report, err = load.Run(ctx, hosts, s, time.Now)
	if f.Compact && err == nil && spec.Name == server.VictoriaMetrics {
		err = peer.MergeAll(ctx, p.URL(""), 1)
	}
	if err = errors.Join(err, p.Stop()); err != nil {
		return r, err
	}
	if r.DiskBytes, err = proc.DiskUsage(dir); err != nil || !f.Compact {
		return r, err
	}
	return r, r.compact(ctx, spec, dir)
}

// publish prints the runs and returns errFailed if one of them is broken.
func publish(w io.Writer, asJSON bool, runs []run) error {
	print := func() error { return writeTable(w, runs) }
	if asJSON {
		print = func() error { return writeLines(w, runs) }
	}
	err := print()
	if slices.ContainsFunc(runs, run.broken) {
		err = errors.Join(err, errFailed)
	}
	return err
}

func writeLines(w io.Writer, runs []run) error {
	enc := json.NewEncoder(w)
	for _, r := range runs {
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write run: %w", err)
		}
	}
	return nil
}
