package query_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/laketest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// rulesLake is a store that is scraped while rules are evaluated: a segment every some seconds with
// the hosts whose turn it was, each host every 15 s. The process has stored them itself. Segments
// live for two minutes and are merged then, those of a minute to a block.
type rulesLake struct {
	*laketest.Lake
	hosts    int
	every    int       // seconds of a segment
	head     bool      // samples are kept by series, and not merged
	clock    time.Time // the next second to be scraped
	segments []key.Segment
	kept     *recent.Segments
	series   [][]segment.Row // by host
	table    *series.Table
}

const (
	hostsInterval = 15 // seconds
	hostModes     = 8
)

// host returns the series of a host.
func (*rulesLake) host(i int) (rows []segment.Row) {
	add := func(name string, lset ...string) {
		lset = append(lset, "instance", fmt.Sprintf("host-%04d:9100", i), "job", "node", "role", fmt.Sprint("role-", i%5))
		rows = append(rows, segment.Row{Labels: laketest.Metric(name, lset...)})
	}
	for k := range hostModes {
		for cpu := range 2 {
			add("node_cpu_seconds_total", "cpu", fmt.Sprint(cpu), "mode", fmt.Sprint("mode", k))
		}
	}
	for k := range 4 {
		add("node_disk_io_time_seconds_total", "device", fmt.Sprint("sd", k))
		add("node_filesystem_avail_bytes", "mountpoint", fmt.Sprint("/m", k))
		add("node_filesystem_size_bytes", "mountpoint", fmt.Sprint("/m", k))
	}
	for _, name := range []string{"node_load1", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"} {
		add(name)
	}
	for k := range 69 {
		add(fmt.Sprintf("node_other_%02d", k))
	}
	return rows
}

// advance lets a minute pass.
func (l *rulesLake) advance() {
	for len(l.series) < l.hosts {
		l.series = append(l.series, l.host(len(l.series)))
	}
	for range 60 / l.every {
		var rows []segment.Row
		for range l.every {
			for i := int(l.clock.Unix() % hostsInterval); i < l.hosts; i += hostsInterval {
				for _, r := range l.series[i] {
					r.Floats = []segment.Float{{T: l.clock.UnixMilli(), V: float64(l.clock.Unix() % 100_000)}}
					rows = append(rows, r)
				}
			}
			l.clock = l.clock.Add(time.Second)
		}
		slices.SortFunc(rows, func(a, b segment.Row) int { return labels.Compare(a.Labels, b.Labels) })
		text, _, err := segmenttest.Encode(rows, nil)
		require.NoError(l.TB, err)
		b, err := segmenttest.BatchIn(l.table, rows, nil)
		require.NoError(l.TB, err)
		s := key.Segment{Tenant: tenant.Default, Window: key.WindowOf(l.clock.UnixMilli() - 1), ID: l.NextID()}
		laketest.Put(l.TB, l.Store, s.String(), text)
		content := l.kept.Of(b, recent.NewLabels(b.View))
		l.kept.Put(s.String(), int64(len(text)), content)
		l.kept.Stored(tenant.Default, s.String(), content)
		l.segments = append(l.segments, s)
	}
	minute := 60 / l.every
	if l.head || len(l.segments) <= 2*minute {
		return
	}
	var rows []segment.Row
	for i := range l.hosts {
		first := l.clock.Add(-3 * time.Minute).Unix()
		first += (int64(i) - first%hostsInterval + hostsInterval) % hostsInterval
		for _, r := range l.series[i] {
			for k := range int64(60 / hostsInterval) {
				at := first + hostsInterval*k
				r.Floats = append(r.Floats, segment.Float{T: 1000 * at, V: float64(at % 100_000)})
			}
			rows = append(rows, r)
		}
	}
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.Part}, rows)
	for _, s := range l.segments[:minute] {
		require.NoError(l.TB, l.Store.Delete(l.TB.Context(), s.String()))
	}
	l.segments = l.segments[minute:]
}

// BenchmarkRules measures small rules, which are all evaluated once a minute while samples come in:
// each reads 1 to 16 series of one host in the last 5 or 10 minutes. It reports how many of the
// objects of a selector were known to match or not: none, where the head has their samples.
//
//	go test ./internal/query -run '^$' -bench Rules -benchmem
func BenchmarkRules(b *testing.B) {
	for _, c := range []struct {
		hosts, every int
		head         bool
	}{{60, 1, false}, {240, 1, false}, {240, 4, false}, {240, 4, true}} {
		hosts := c.hosts
		b.Run(fmt.Sprintf("hosts=%d/every=%ds/head=%t", hosts, c.every, c.head), func(b *testing.B) {
			l := &rulesLake{hosts: hosts, every: c.every, head: c.head, table: series.NewTable(0), clock: laketest.Now().Truncate(2 * time.Hour).Add(time.Minute)}
			store, reg := laketest.NewDir(b), prometheus.NewRegistry()
			l.kept = recent.New(256<<20, nil, func() time.Time { return l.clock })
			if c.head {
				l.kept.KeepHeads(256<<20, true, reg)
			}
			set := query.Settings{MaxStaleness: time.Second, Recent: l.kept}
			st, err := query.New(set, store, reg, slog.New(slog.DiscardHandler), func() time.Time { return l.clock })
			require.NoError(b, err)
			defer func() { require.NoError(b, st.Close()) }()
			st.KeepRecent(tenant.Default)
			l.Lake = &laketest.Lake{Stage: st, TB: b, Store: store, Registry: reg}
			var rules []string
			for i := range hosts {
				m := fmt.Sprintf(`instance="host-%04d:9100"`, i)
				rules = append(rules,
					`sum by (instance, mode) (rate(node_cpu_seconds_total{`+m+`}[5m]))`,
					`1 - sum by (instance) (rate(node_cpu_seconds_total{`+m+`,mode="mode0"}[5m])) / sum by (instance) (rate(node_cpu_seconds_total{`+m+`}[5m]))`,
					`1 - node_memory_MemAvailable_bytes{`+m+`} / node_memory_MemTotal_bytes{`+m+`}`,
					`avg_over_time(node_load1{`+m+`}[10m])`,
					`max by (instance) (rate(node_disk_io_time_seconds_total{`+m+`}[5m]))`,
					`count by (instance) (node_cpu_seconds_total{`+m+`,mode="mode1"})`,
					`node_filesystem_avail_bytes{`+m+`} / node_filesystem_size_bytes{`+m+`} < 0.15`)
			}
			ask := func(i int) {
				// rules are evaluated all over their minute
				at := l.clock.Add(-time.Duration(i) * 10 * time.Second / time.Duration(len(rules)))
				require.NoError(b, l.Exec(b.Context(), laketest.Query{Text: rules[i], Start: at, End: at}).Err)
			}
			for range 14 {
				l.advance()
				ask(0) // so that the head stays
			}
			for range 2 {
				for i := range rules {
					ask(i)
				}
				l.advance()
			}
			known, new := l.Counted("promlake_query_cache_hits_total", "selection"), l.Counted("promlake_query_cache_misses_total", "selection")
			spent, before, i := time.Duration(0), processorTime(b), 0
			for b.Loop() {
				if i > 0 && i%len(rules) == 0 {
					b.StopTimer()
					spent += processorTime(b) - before
					l.advance()
					before = processorTime(b)
					b.StartTimer()
				}
				ask(i % len(rules))
				i++
			}
			spent += processorTime(b) - before
			b.ReportMetric(float64(spent.Nanoseconds())/1000/float64(i), "cpu-us/op")
			b.ReportMetric((l.Counted("promlake_query_cache_hits_total", "selection")-known)/float64(i), "known/op")
			b.ReportMetric((l.Counted("promlake_query_cache_misses_total", "selection")-new)/float64(i), "matched/op")
		})
	}
}
