package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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
		spec.Args = f.args(spec)
		t := target{name: spec.Name, dir: filepath.Join(dir, spec.Name), feed: spec, ask: spec}
		if spec.Name == server.Promlake {
			t.ask.Args = func(addr, dir string) []string { return append(spec.Args(addr, dir), f.PromlakeArgs...) }
		}
		all = append(all, t)
		if spec.Name == server.Promlake && f.Segments {
			t.name, t.dir = uncompacted, filepath.Join(dir, "promlake-segments")
			all = append(all, t)
		}
	}
	return all, nil
}

// args returns a server's arguments: it keeps all data, compacts nothing during the questions, and
// caches no answers.
func (f *Flags) args(spec server.Spec) func(addr, dir string) []string {
	further := map[string][]string{
		server.Promlake: {"--no-compactor.enabled"},
		server.VictoriaMetrics: {
			"-retentionPeriod=100y", "-search.disableCache", "-search.latencyOffset=0s", "-search.maxUniqueTimeseries=10000000",
			"-search.maxQueryDuration=2m", "-search.logSlowQueryDuration=0",
		},
		server.Prometheus: {"--storage.tsdb.retention.time=100y", "--query.max-samples=500000000"},
	}[spec.Name]
	return func(addr, dir string) []string { return append(spec.Args(addr, dir), further...) }
}

// ready is the name of the file that marks a target's folder as complete.
const ready = "bench-ready.json"

// prepared is its content.
type prepared struct {
	Scale   scale         `json:"scale"`
	Samples int64         `json:"samples"`
	Took    time.Duration `json:"took_ns"`
	Disk    int64         `json:"disk_bytes"`
}

// prepare fills the target's folder unless it holds the data of this scale already.
func (t target) prepare(ctx context.Context, f *Flags, s scale) (p prepared, err error) {
	path := filepath.Join(t.dir, ready)
	if b, err := os.ReadFile(path); err == nil {
		if json.Unmarshal(b, &p) == nil && p.Scale == s {
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
	if p.Samples, err = t.fill(ctx, f, s); err != nil {
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

// fill starts the server, feeds it, waits for the end of its merges, and stops it.
func (t target) fill(ctx context.Context, f *Flags, s scale) (samples int64, err error) {
	p, err := server.Start(ctx, t.feed, t.dir)
	if err != nil {
		return 0, err
	}
	samples, err = feed(ctx, p.WriteURL(), s)
	if err == nil {
		err = t.settle(ctx, root(t.feed, p), s)
	}
	if err = errors.Join(err, p.Stop()); err != nil {
		return samples, err
	}
	if t.name == server.Promlake {
		err = compact(ctx, f.ServerBin, t.dir)
	}
	return samples, err
}

func (t target) settle(ctx context.Context, root string, s scale) error {
	switch t.name {
	case server.VictoriaMetrics: // it keeps months apart
		first := s.end().Add(-max(s.History, time.Duration(s.Samples)*interval))
		months := (s.end().Year()-first.Year())*12 + int(s.end().Month()-first.Month()) + 1
		return peer.MergeAll(ctx, root, months)
	case server.Prometheus:
		return peer.AwaitBlocks(ctx, root)
	}
	return nil
}

func root(spec server.Spec, p *server.Process) string {
	return strings.TrimSuffix(p.WriteURL(), spec.WritePath)
}

// compact runs promlake compact until no job is ready: at a time when all windows are closed, and
// at those when a deletion delay has passed since the replaced objects were replaced, and since
// their end of history was recorded.
func compact(ctx context.Context, binary, dir string) error {
	for _, ahead := range []time.Duration{10 * time.Minute, 2 * time.Hour, 4 * time.Hour} {
		cmd := exec.CommandContext(ctx, binary, "compact", "--store", "file://"+filepath.Join(dir, "store"), "--until-idle",
			"--now", time.Now().Add(ahead).UTC().Format(time.RFC3339), "--log.level", "warn", "--compactor.data-dir", dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("run promlake compact: %w; its output ends with:\n%s", err, out[max(0, len(out)-2000):])
		}
	}
	return nil
}
