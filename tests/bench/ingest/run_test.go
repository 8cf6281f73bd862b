package ingest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

func measured(name string, rate, cpu float64) run {
	return run{Server: name, DiskBytes: 3e6, Report: load.Report{
		SamplesPerSecond: rate, Samples: 2e6, Latency: load.Latency{P50: 1, P99: 8},
		Server: &load.Server{CPUPerMillion: cpu, PeakRSSBytes: 100e6},
	}}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeTable(&b, []run{
		measured(server.Prometheus, 100, 4),
		measured(server.Promlake, 250, 1),
		measured(server.Promlake, 150, 3),
		measured(server.Promlake, 170, 1.5),
		{Server: server.Promlake, Error: "it did not start"},
		{Server: server.VictoriaMetrics, Error: "it did not start"},
	}))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Equal(t, "| measure                     | promlake | victoria-metrics | prometheus | promlake/victoria-metrics | promlake/prometheus |", lines[0])
	require.Equal(t, "| --------------------------- | -------: | ---------------: | ---------: | ------------------------: | ------------------: |", lines[1])
	require.Equal(t, "| samples/s                   |      170 |                – |        100 |                         – |                1.70 |", lines[2])
	require.Equal(t, "| CPU-s per million samples   |    1.500 |                – |      4.000 |                         – |                0.38 |", lines[3])
	require.Contains(t, b.String(), "| disk, bytes/sample          |     1.50 |")
	require.Len(t, lines, 2+len(measures())-4, "nothing was compacted")
}

func TestTableOfPeersAlone(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeTable(&b, []run{measured(server.Prometheus, 100, 4)}))
	require.NotContains(t, b.String(), server.Promlake)
}

func TestMedian(t *testing.T) {
	rate := func(r run) (float64, bool) { return r.Report.SamplesPerSecond, r.Report.SamplesPerSecond > 0 }
	for _, tc := range []struct {
		rates []float64
		want  float64
		known bool
	}{
		{nil, 0, false},
		{[]float64{0}, 0, false},
		{[]float64{3}, 3, true},
		{[]float64{9, 1, 0, 3}, 3, true},
		{[]float64{9, 1, 3, 4}, 3.5, true},
	} {
		var runs []run
		for _, r := range tc.rates {
			runs = append(runs, measured("x", r, 0))
		}
		got, known := median(runs, rate)
		require.Equal(t, tc.want, got)
		require.Equal(t, tc.known, known)
	}
}

func TestScheduleRotates(t *testing.T) {
	specs := []server.Spec{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	var order []string
	for _, s := range schedule(specs, 4) {
		order = append(order, s.Name)
	}
	require.Equal(t, "abcbcacababc", strings.Join(order, ""))
}

func TestPublishReportsBrokenRuns(t *testing.T) {
	good, refused := measured(server.Promlake, 1, 1), measured(server.Promlake, 1, 1)
	refused.Report.RequestsFailed = 1
	var b bytes.Buffer
	require.NoError(t, publish(&b, true, []run{good}))
	require.ErrorIs(t, publish(&b, true, []run{good, refused}), errFailed)
	require.ErrorIs(t, publish(&b, false, []run{{Server: server.Promlake, Error: "gone"}}), errFailed)

	var first run
	require.NoError(t, json.NewDecoder(&b).Decode(&first))
	require.Equal(t, good, first)
}

func TestRunPrintsItself(t *testing.T) {
	r := measured(server.Promlake, 170, 1.5)
	r.Report.RequestsFailed, r.Report.Messages = 2, map[string]string{"500": "boom", "429": "slower"}
	require.Equal(t, "promlake: 170 samples/s, p99 8.0 ms, 1.500 CPU-s per million samples, peak RSS 100.0 MB, 3.0 MB on disk, 2 requests failed "+
		"(429: slower) (500: boom)", r.String())
	require.Equal(t, "promlake: gone", run{Server: server.Promlake, Error: "gone"}.String())
}

func TestComparisons(t *testing.T) {
	own, peer := measured(server.Promlake, 1, 1), measured(server.VictoriaMetrics, 1, 2)
	own.Report.Server.CPUSeconds, peer.Report.Server.CPUSeconds = 2, 4
	plain := comparisons("few", []run{own, peer})
	require.Equal(t, []table.Comparison{{Name: "few: load", Unit: disk.CPUUnit, Promlake: 1, Peer: 2}, {Name: "few: load, peak memory", Unit: "MB", Promlake: 100, Peer: 100}}, plain)

	own.Report.Series, peer.Report.Series = 1000, 1000
	own.Kept, own.Compacted = disk.Files{"samples": 1e6, "rollup-5m": 5e5}, &disk.Compaction{CPU: time.Second, PeakRSS: 50e6, Levels: map[string]*disk.Level{"2h": {Read: 2e6}, "24h": {Read: 3e6}}}
	peer.Kept = disk.Files{"samples: values.bin": 2e6}
	require.Equal(t, []table.Comparison{
		{Name: "few: compaction", Unit: disk.CPUUnit, Promlake: 0.5},
		{Name: "few: compaction", Unit: "passes", Promlake: 2.5},
		{Name: "few: compaction", Unit: "CPU-s", Promlake: 1, Peer: 4},
		{Name: "few: compaction, peak memory", Unit: "MB", Promlake: 50, Peer: 100},
		{Name: "few: load and compaction", Unit: disk.CPUUnit, Promlake: 1.5, Peer: 2},
		{Name: "few: live", Unit: "bytes per sample", Promlake: 0.5, Peer: 1},
		{Name: "few: live with rollups", Unit: "bytes per sample", Promlake: 0.75, Peer: 1},
		{Name: "few: rollups on top", Unit: "bytes per sample", Promlake: 0.25},
		{Name: "few: live", Unit: "bytes per series", Promlake: 1000, Peer: 2000},
		{Name: "few: rollups on top", Unit: "bytes per series", Promlake: 500},
	}, comparisons("few", []run{own, peer})[2:])
	require.Len(t, comparisons("few", []run{own}), 12)
}
