package query

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/tests/bench/dashboard"
	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// Live are the flags of the command that queries running servers: scrape after scrape of an hour
// arrives as from an agent, but faster, and the servers are not restarted before the queries.
type Live struct {
	server.Flags `embed:""`

	Hosts        int           `default:"20" help:"Hosts, of 507 series each."`
	Scrapes      int           `default:"240" help:"Scrapes of each host, 15 s apart in sample time."`
	Pace         float64       `default:"24" help:"How much faster than sample time the scrapes arrive."`
	Rounds       int           `short:"k" default:"7" help:"Warm rounds."`
	Settle       time.Duration `default:"5s" help:"Time after the load during which a server's processor time still counts as that of the load, and Promlake merges what is left."`
	Mix          time.Duration `default:"20s" help:"How long 8 clients send the queries of small panels to each server (0 = not at all)."`
	PromlakeArgs []string      `sep:"none" help:"Additional arguments of promlake serve (repeatable)."`
	WorkDir      string        `type:"path" help:"Parent of the servers' folders (default: the system's temporary folder)."`
	JSON         bool          `name:"json" help:"Print JSON instead of the tables."`
}

const (
	recentSpan = 20 * time.Minute // of queries of a part of the hour
	window     = 2 * time.Hour    // of Promlake's lowest level
	leastPace  = 1
	// liveLongest bounds a load, which ends after its scrapes.
	liveLongest = 3 * time.Hour
	leastWait   = 500 * time.Millisecond // of what is scaled by the pace
)

// Run measures the servers and prints the tables.
func (f *Live) Run(ctx context.Context) error {
	r, err := f.measure(ctx, server.Promlake, server.VictoriaMetrics, server.Prometheus)
	if err != nil {
		return err
	}
	return r.publish(os.Stdout, f.JSON)
}

// Compare measures Promlake and VictoriaMetrics.
func (f *Live) Compare(ctx context.Context) ([]table.Comparison, error) {
	r, err := f.measure(ctx, server.Promlake, server.VictoriaMetrics)
	if err != nil {
		return nil, err
	}
	return r.comparisons(), r.failures()
}

// Names returns the names of the questions, which are the rows of Compare.
func (f *Live) Names() (names []string) {
	for _, q := range (scale{Set: live, Samples: f.Scrapes}).questions() {
		names = append(names, q.name())
	}
	return names
}

// scale places the hour of scrapes: it ends now, after they have arrived, or with the last window
// of two hours if it would begin before the present one.
func (f *Live) scale(now time.Time) (scale, error) {
	s := scale{Set: live, Hosts: f.Hosts, Samples: f.Scrapes, Pace: f.Pace}
	span := time.Duration(f.Scrapes) * interval
	if f.Hosts < 1 || f.Rounds < 1 || f.Pace < leastPace || span < recentSpan || span > window {
		return s, fmt.Errorf("%d scrapes of %d hosts at a pace of %g, %d rounds: want at least a host, a round, a pace of %d, and %d to %d scrapes",
			f.Scrapes, f.Hosts, f.Pace, f.Rounds, leastPace, recentSpan/interval, window/interval)
	}
	end := now.Add(time.Duration(float64(span) / f.Pace)).Truncate(interval)
	if began := end.Truncate(window); end.Sub(began) < span {
		end = began
	}
	s.Begin = end.Add(-span)
	return s, nil
}

// paced returns a server's arguments. What Promlake's compactor waits for is as much shorter as the
// scrapes are faster, so that it finds as many segments each time. The window of the hour stays
// open.
func (f *Live) paced(name string) []string {
	if name != server.Promlake {
		return further(name)
	}
	scaled := func(d, least time.Duration) string {
		return max(time.Duration(float64(d)/f.Pace), least).Round(time.Millisecond).String()
	}
	return append([]string{
		"--compactor.compaction-interval=" + scaled(time.Minute, 2*leastWait), "--compactor.window-delay=24h",
		"--compactor.settle-delay=" + scaled(time.Minute, 2*leastWait), "--ingest.settle-delay=" + scaled(time.Minute, 2*leastWait),
		"--ingest.flush-timeout=" + scaled(30*time.Second, leastWait),
		"--compactor.deletion-delay=" + scaled(15*time.Minute, 30*time.Second), "--query.timeout=29s",
	}, f.PromlakeArgs...)
}

// measure starts all servers, sends them the scrapes at the same time, and then the questions and
// the mix.
func (f *Live) measure(ctx context.Context, names ...string) (r *report, err error) {
	s, err := f.scale(time.Now())
	if err != nil {
		return nil, err
	}
	specs, err := f.Installed(names...)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(f.WorkDir, "bench-live-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var running []*server.Process
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.Stop())
		}
	}()
	r = &report{Scale: s, Questions: s.questions()}
	targets := make([]target, len(specs))
	for k, spec := range specs {
		t := &targets[k]
		t.name, t.dir = spec.Name, filepath.Join(dir, spec.Name)
		if err := os.Mkdir(t.dir, 0o755); err != nil {
			return nil, fmt.Errorf("make folder: %w", err)
		}
		p, err := server.Start(ctx, spec.With(f.paced(spec.Name)...), t.dir)
		if err != nil {
			return nil, err
		}
		running, r.Targets = append(running, p), append(r.Targets, t.name)
	}
	if r.Prepared, err = scrape(ctx, targets, running, s, f.Settle); err != nil {
		return nil, err
	}
	r.Cells = newCells(len(r.Questions), len(running))
	if err := r.Cells.rounds(ctx, running, r.Questions, f.Rounds); err != nil {
		return nil, err
	}
	r.Cells.check(targets, r.Questions)
	for _, p := range running {
		if f.Mix > 0 {
			m, err := warmMix(ctx, p, s, f.Mix)
			if err != nil {
				return nil, err
			}
			r.Mix = append(r.Mix, m)
		}
		u, err := proc.Read(p.PID())
		if err != nil {
			return nil, err
		}
		r.RSS, r.PeakRSS = append(r.RSS, u.RSS), append(r.PeakRSS, u.PeakRSS)
	}
	return r, nil
}

// scrape sends all servers the scrapes at the same time, as they arrive, and counts the objects of
// Promlake that the queries read.
func scrape(ctx context.Context, targets []target, running []*server.Process, s scale, settle time.Duration) ([]prepared, error) {
	all := make([]prepared, len(running))
	loads, loading := errgroup.WithContext(ctx)
	for k, p := range running {
		loads.Go(func() (err error) {
			if all[k].Life, err = loaded(loading, p, settle, s); err != nil {
				return fmt.Errorf("send scrapes to %s: %w", targets[k].name, err)
			}
			all[k].Scale = s
			return nil
		})
	}
	if err := loads.Wait(); err != nil {
		return nil, err
	}
	for k, t := range targets {
		if t.name == server.Promlake {
			x, err := &all[k], error(nil)
			if x.Segments, x.Parts, err = disk.Objects(ctx, server.Store(t.dir)); err != nil {
				return nil, err
			}
			note("%s has the hour in %d segments and %d parts", t.name, x.Segments, x.Parts)
		}
	}
	return all, nil
}

// liveQuestions returns what dashboards ask all day: at the end, and over the last 20 minutes and
// all of the hour at the step of the scrapes.
func (s scale) liveQuestions() []Question {
	const one = `node_cpu_seconds_total{instance="host_0:9100",cpu="0",mode="user"}`
	over := func(span time.Duration, text string) Question {
		name := "instant"
		if span > 0 {
			name = model.Duration(span).String()
		}
		return Question{Name: fmt.Sprintf("live hour, %s: %s", name, text), Text: text, Start: s.end().Add(-span), End: s.end(), Step: interval}
	}
	hour := s.end().Sub(s.begin())
	top := over(0, `topk(5, rate(node_network_receive_bytes_total[5m]))`)
	top.Ties = true
	return []Question{
		over(0, `count({job="node_exporter"})`),
		over(0, `node_load1`),
		over(0, `sum by (instance) (rate(node_cpu_seconds_total{mode!="idle"}[5m]))`),
		top,
		over(recentSpan, `count({job="node_exporter"})`),
		over(recentSpan, `node_load1{instance="host_0:9100"}`),
		over(recentSpan, `1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))`),
		over(recentSpan, `sum by (mode) (rate(node_cpu_seconds_total{instance="host_0:9100"}[5m]))`),
		over(recentSpan, `sum by (device) (irate(node_disk_read_bytes_total[2m]))`),
		over(hour, `sum by (mode) (rate(node_cpu_seconds_total[5m]))`),
		over(hour, `node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes`),
		over(hour, `rate(`+one+`[5m])`),
		over(hour, `max_over_time(node_load1[5m])`),
		over(hour, `sum by (instance) (avg_over_time(node_filesystem_avail_bytes[10m]))`),
	}
}

// livePanel returns the query of a random panel of a random host, over the last 20 minutes or all
// of the hour.
func (s scale) livePanel(rng *rand.Rand) Question {
	host := fmt.Sprintf("host_%d:9100", rng.IntN(s.Hosts))
	from := s.end().Add(-recentSpan)
	if rng.IntN(2) == 0 {
		from = s.begin()
	}
	return Question{Text: fmt.Sprintf(dashboard.Texts[rng.IntN(len(dashboard.Texts))], host), Start: from, End: s.end(), Step: interval}
}
