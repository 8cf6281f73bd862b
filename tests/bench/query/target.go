package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
)

// uncompacted is the name of Promlake over the segments as they were written.
const uncompacted = server.Promlake + " (segments)"

// target is a server and its folder with the data.
type target struct {
	name string
	dir  string
	feed server.Spec // for the feed
	ask  server.Spec // for the questions
}

// targets returns the chosen servers in the order of the table, each with its own folder under dir.
func (f *Flags) targets(dir string) ([]target, error) {
	specs, err := f.Installed(server.Promlake, server.VictoriaMetrics, server.Prometheus)
	if err != nil {
		return nil, err
	}
	var all []target
	for _, spec := range specs {
		spec = spec.With(further(spec.Name)...)
		t := target{name: spec.Name, dir: filepath.Join(dir, spec.Name), feed: spec, ask: spec}
		if spec.Name == server.Promlake {
			t.ask = spec.With(f.PromlakeArgs...)
		}
		all = append(all, t)
		if spec.Name == server.Promlake && f.Segments {
			t.name, t.dir = uncompacted, filepath.Join(dir, "promlake-segments")
			all = append(all, t)
		}
	}
	return all, nil
}

// further returns a server's arguments: it keeps all data, compacts nothing during the questions,
// and caches no answers.
func further(name string) []string {
	return map[string][]string{
		server.Promlake: {"--no-compactor.enabled"},
		server.VictoriaMetrics: {
			"-retentionPeriod=100y", "-search.disableCache", "-search.latencyOffset=0s", "-search.maxUniqueTimeseries=10000000",
			"-search.maxQueryDuration=2m", "-search.logSlowQueryDuration=0",
		},
		server.Prometheus: {"--storage.tsdb.retention.time=100y", "--query.max-samples=500000000"},
	}[name]
}

// ready is the name of the file that marks a target's folder as complete.
const ready = "bench-ready.json"

// prepared is its content.
type prepared struct {
	Scale scale         `json:"scale"`
	Life  disk.Life     `json:"life"`
	Took  time.Duration `json:"took_ns"`
	Disk  int64         `json:"disk_bytes"` // 0: not known
	// of the set live: objects of Promlake that the queries read
	Segments int `json:"segments,omitempty"`
	Parts    int `json:"parts,omitempty"`
}

// prepare fills the target's folder unless it holds the data of this scale already.
func (t target) prepare(ctx context.Context, f *Flags, s scale) (p prepared, err error) {
	path := filepath.Join(t.dir, ready)
	if b, err := os.ReadFile(path); err == nil {
		err := json.Unmarshal(b, &p)
		p.Scale.described = s.described // its name is in the file
		if err == nil && p.Scale == s {
			return p, nil
		}
		return p, fmt.Errorf("%s holds other data; choose another folder or remove it", t.dir)
	}
	if err := os.RemoveAll(t.dir); err != nil {
		return p, fmt.Errorf("remove unfinished data: %w", err)
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return p, fmt.Errorf("make folder: %w", err)
	}
	begin := time.Now()
	p.Scale = s
	if p.Life, err = t.fill(ctx, f, s); err != nil {
		return p, err
	}
	p.Took = time.Since(begin)
	if p.Disk, err = proc.DiskUsage(t.dir); err != nil {
		return p, err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return p, fmt.Errorf("write %s: %w", ready, err)
	}
	return p, os.WriteFile(path, b, 0o644)
}

// fill starts the server, feeds it, waits for the end of its merges, stops it, and compacts what it
// stored.
func (t target) fill(ctx context.Context, f *Flags, s scale) (l disk.Life, err error) {
	p, err := server.Start(ctx, t.feed, t.dir)
	if err != nil {
		return l, err
	}
	l, err = loaded(ctx, p, f.Settle, s)
	if err == nil {
		err = t.settle(ctx, p.URL(""), s)
	}
	if err = errors.Join(err, p.Stop()); err != nil {
		return l, err
	}
	switch t.name {
	case server.Promlake:
		store := server.Store(t.dir)
		if l.Compaction, err = disk.Compact(ctx, f.ServerBin, store, t.dir, times()...); err != nil {
			return l, err
		}
		var live disk.Live
		live, err = disk.ReadLive(ctx, store, l.Samples)
		l.Kept = live.Files
	case server.VictoriaMetrics:
		l.Kept, err = disk.Victoria(filepath.Join(t.dir, "data"))
	}
	return l, err
}

// loaded feeds a server, and measures what that costs it.
func loaded(ctx context.Context, p *server.Process, settle time.Duration, s scale) (l disk.Life, err error) {
	before, err := proc.Read(p.PID())
	if err != nil {
		return l, err
	}
	if l.Samples, l.Series, err = s.feed(ctx, p); err != nil {
		return l, err
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return l, context.Cause(ctx)
	}
	after, err := proc.Read(p.PID())
	l.Load, l.LoadRSS = (after.CPU - before.CPU).Seconds(), after.PeakRSS
	return l, err
}

// settle waits for the end of a server's merges.
func (t target) settle(ctx context.Context, root string, s scale) error {
	switch t.name {
	case server.VictoriaMetrics: // it keeps months apart
		return peer.MergeAll(ctx, root, s.months())
	case server.Prometheus:
		return peer.AwaitBlocks(ctx, root)
	}
	return nil
}

// times returns how far ahead of the clock Promlake compacts: so that all windows are closed, and
// when a deletion delay has passed since the replaced objects were replaced, and since their end of
// history was recorded.
func times() []time.Duration { return []time.Duration{disk.Settled, 2 * time.Hour, 4 * time.Hour} }
