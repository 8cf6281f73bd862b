package all

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/tests/bench/dashboard"
	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/growth"
	"github.com/promlake/promlake/tests/bench/ingest"
	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/seeds"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/small"
	"github.com/promlake/promlake/tests/bench/storage"
	"github.com/promlake/promlake/tests/bench/table"
	"github.com/promlake/promlake/tests/bench/wire"
)

// step is one of the benchmarks, and what is wanted of its rows.
type step struct {
	name  string
	run   func(context.Context) ([]table.Comparison, error)
	goals []goal
}

// sizes are how much the steps measure.
type sizes struct {
	loads, protocols   []load
	settle             time.Duration // after a load
	day                time.Duration // of the storage benchmark
	mixed, hosts, tsbs query.Flags
	live               query.Live
	growth             []int // series
	growthQueries      int
	dashboard          time.Duration // span of its samples
	ranges             []time.Duration
	smallest           time.Duration // of the small server; 0: Flags.SmallServer
}

// load is a load of ingestion: hosts of 507 series, their scrapes, and samples in a request.
type load struct {
	hosts, scrapes, batch int
	interval              time.Duration
	compact               bool
	protocol              wire.Version
	goals                 []goal
}

const perHost = 507 // series of a host

func (l load) name() string {
	name := fmt.Sprintf("%s series × %d samples", table.Count(int64(l.hosts*perHost)), l.scrapes)
	if l.protocol != wire.V1 {
		return name + ", protocol " + l.protocol.String()
	}
	return name + fmt.Sprintf(", %s in a request", table.Count(int64(l.batch)))
}

// full is the benchmark.
func full() sizes {
	s := sizes{
		loads: []load{
			{20, 500, 2000, 10 * time.Second, true, wire.V1, []goal{atMost("load", disk.CPUUnit, 0.4), within("rollups on top", "bytes per sample", 0.05)}},
			{200, 60, 2000, 15 * time.Second, false, wire.V1, []goal{atMost("load", disk.CPUUnit, 0.35)}},
			{200, 60, 10_000, 15 * time.Second, false, wire.V1, []goal{atMost("load", disk.CPUUnit, 0.25)}},
			{2000, 6, 10_000, 15 * time.Second, true, wire.V1, []goal{
				within("load, peak memory", "MB", 300), within("compaction", "CPU-s", 10), within("compaction, peak memory", "MB", 400),
				within("live", "bytes per series", 20), within("rollups on top", "bytes per series", 3),
			}},
		},
		settle: 5 * time.Second, day: 24 * time.Hour,
		mixed:  query.Flags{Series: 10_000, Samples: 20_000_000, History: 90 * 24 * time.Hour, Rounds: 5, Cold: true, Bucket: true, Mix: 20 * time.Second},
		hosts:  query.Flags{Set: "hosts", Hosts: 20, Span: 8 * time.Hour, Rounds: 7},
		tsbs:   query.Flags{Hosts: 100, Span: 24 * time.Hour, Rounds: 7},
		live:   query.Live{Hosts: 20, Scrapes: 240, Pace: 24, Rounds: 7, Mix: 20 * time.Second},
		growth: []int{100_000, 1_000_000}, growthQueries: 20, dashboard: 8 * time.Hour, ranges: []time.Duration{15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 8 * time.Hour},
	}
	for v := wire.V1; v.Valid(); v++ {
		if v != wire.V1 && v != wire.V2 { // Promlake's peers have only version 1
			s.protocols = append(s.protocols, load{200, 20, 2000, 15 * time.Second, false, v, nil})
		}
	}
	return s
}

// longest bounds a load, which ends after its scrapes.
const longest = time.Hour

// servers are those that are compared.
func (f *Flags) servers() server.Flags {
	servers := f.Flags
	if len(servers.Only) == 0 {
		servers.Only = []string{server.Promlake, server.VictoriaMetrics}
	}
	return servers
}

func (f *Flags) steps(s sizes) (out []step) {
	servers := f.servers()
	ingestion := func(l load) step {
		flags := ingest.Flags{
			Flags: servers, Repeat: 1, Hosts: l.hosts, Scrapes: l.scrapes, Batch: l.batch, Duration: longest, Concurrency: 4, Protocol: l.protocol.String(),
			Interval: l.interval, Compact: l.compact, Settle: s.settle,
		}
		return step{l.name(), func(ctx context.Context) ([]table.Comparison, error) { return flags.Compare(ctx, l.name()) }, l.goals}
	}
	for _, q := range []*query.Flags{&s.mixed, &s.hosts, &s.tsbs} {
		q.Flags, q.Program, q.Settle = servers, f.Program, s.settle
	}
	tsbs := seeds.CPUOnly(s.tsbs.Hosts, s.tsbs.Span, "single-groupby-1-1-1", "single-groupby-1-8-1", "double-groupby-1")
	for _, l := range s.loads {
		out = append(out, ingestion(l))
	}
	s.live.Flags, s.live.Settle = servers, s.settle
	agent := small.Flags{Flags: servers, Duration: f.SmallServer, Hosts: 20, Rate: 700}
	if s.smallest > 0 {
		agent.Duration = s.smallest
	}
	watched := dashboard.Flags{Flags: servers, Program: f.Program, Hosts: 5, Span: s.dashboard, Ranges: s.ranges}
	day := storage.Flags{Flags: servers, Hosts: 4, Span: s.day, Interval: 10 * time.Second, Vary: true}
	grown := growth.Flags{Flags: servers, Series: s.growth, Rounds: 12, Batch: 10_000, Churn: 0.01, Queries: s.growthQueries, Settle: s.settle}
	if f.Large {
		grown.Series = append(grown.Series, 5_000_000)
	}
	out = append(out,
		step{
			fmt.Sprintf("small queries, %s series × %s samples", table.Count(int64(s.hosts.Hosts*perHost)), table.Count(int64(s.hosts.Span/(15*time.Second)))),
			s.hosts.Compare, hostGoals(),
		},
		step{"live hour", s.live.Compare, liveGoals(s.live)},
		step{"queries of mixed data", s.mixed.Compare, mixedGoals(s.mixed)},
		step{"a dashboard's requests to the store", watched.Compare, nil},
		step{"TSBS cpu-only", func(ctx context.Context) ([]table.Comparison, error) { return s.tsbs.CompareSet(ctx, tsbs) }, tsbsGoals()},
		step{"a small server", agent.Compare, []goal{atMost("processor", "CPU-s", 0.9), atMost("memory", "MB", 1), atMost("peak memory", "MB", 1)}},
		step{"a day of samples", day.Compare, nil},
		step{"growth", grown.Compare, growthGoals(grown.Series)},
	)
	for _, l := range s.protocols {
		out = append(out, ingestion(l))
	}
	return out
}
