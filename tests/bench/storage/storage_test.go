package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/fleet"
)

func testReplay(t *testing.T, rounds int) *fleet.Replay {
	t.Helper()
	c := &capture.Capture{Times: []int64{1e12, 1e12 + 2000}, Series: []capture.Series{
		{Labels: labels.FromStrings(model.MetricNameLabel, "a"), Values: []float64{1.5, 2}},
		{Labels: labels.FromStrings(model.MetricNameLabel, "b_total"), Values: []float64{1, 4}},
	}}
	r, err := fleet.NewReplay(c, fleet.ReplaySettings{Hosts: 3, Rounds: rounds, Start: day, Interval: 10 * time.Second})
	require.NoError(t, err)
	return r
}

// TestFeed decodes all requests: every sample of every host once, in order, and equal bytes each
// time.
func TestFeed(t *testing.T) {
	const rounds = 2*roundsPerRequest + 7
	r := testReplay(t, rounds)
	receive := func() (samples map[string][]prompb.Sample, bodies map[string]bool) {
		samples, bodies = map[string][]prompb.Sample{}, map[string]bool{}
		var mu sync.Mutex
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			var body bytes.Buffer
			w, err := remote.DecodeWriteRequest(io.TeeReader(req.Body, &body))
			if err != nil {
				panic(err)
			}
			mu.Lock()
			defer mu.Unlock()
			bodies[body.String()] = true
			for _, ts := range w.Timeseries {
				k := fmt.Sprint(ts.Labels)
				samples[k] = append(samples[k], ts.Samples...)
			}
		}))
		defer srv.Close()
		sent, err := feed(t.Context(), srv.URL, r, rounds)
		require.NoError(t, err)
		require.Equal(t, int64(rounds*r.Hosts()*r.PerHost()), sent)
		return samples, bodies
	}
	samples, bodies := receive()
	require.Len(t, samples, r.Hosts()*r.PerHost())
	for k, s := range samples {
		require.Len(t, s, rounds, k)
		for i := range s {
			require.Equal(t, int64(10_000*i), s[i].Timestamp-s[0].Timestamp)
		}
	}
	_, again := receive()
	require.Equal(t, bodies, again)
}

func TestFeedStopsAtAnError(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "too old", http.StatusBadRequest) }))
	defer srv.Close()
	_, err := feed(t.Context(), srv.URL, testReplay(t, 5), 5)
	require.ErrorContains(t, err, "status 400: too old")
}

// TestCompareScans writes a file as blocks have them and sums it both ways.
func TestCompareScans(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "samples-0000.parquet")
	var b bytes.Buffer
	w := parquet.NewGenericWriter[stored](&b)
	for group := range 3 {
		var rows []stored
		for i := range 1000 + group {
			rows = append(rows, stored{Metric: "m", SeriesID: 1, TS: int64(i), Int: int64(i), Div: 100}, stored{Metric: "m", SeriesID: 1, TS: int64(i), Int: 3, Div: 10})
		}
		_, err := w.Write(rows)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))

	s, err := compareScans(context.Background(), []string{path}, filepath.Join(dir, "plain"), 2)
	require.NoError(t, err)
	require.Len(t, s.Block, 2)
	require.Len(t, s.Plain, 2)
	require.Positive(t, s.PlainBytes)
	f, err := openParquet(filepath.Join(dir, "plain", "0000.parquet"))
	require.NoError(t, err)
	defer f.Closer.Close()
	var rows []int64
	for _, g := range f.RowGroups() {
		rows = append(rows, g.NumRows())
	}
	require.Equal(t, []int64{2000, 2002, 2004}, rows, "the same row groups")
	columns, err := columnBytes([]string{path})
	require.NoError(t, err)
	require.Contains(t, columns, "v_int")
}

func TestTables(t *testing.T) {
	results := []result{
		{
			Name: "promlake", Samples: 1000, Files: disk.Files{"samples": 400, "series": 50, "rollup-5m": 100}, Columns: map[string]int64{"v_int": 300, "v_div": 60},
			Compact: &disk.Compaction{CPU: time.Second, PeakRSS: 2e6, Levels: map[string]*disk.Level{"2h": {Jobs: 1, Read: 1000, Took: time.Second}}},
			Scan:    &scan{Block: []time.Duration{20, 10, 40}, Plain: []time.Duration{10, 15, 20}, PlainBytes: 500},
		},
		{Name: "victoria-metrics", Samples: 1000, Files: disk.Files{"samples: values.bin": 480, "index": 20}},
	}
	var b bytes.Buffer
	require.NoError(t, publish(&b, false, results))
	for _, line := range []string{
		"| promlake         |    1000 |   450 |       0.4500 |       0.5500 | 0.900 |        1.100 |",
		"| victoria-metrics |    1000 |   500 |       0.5000 |       0.5000 | 1.000 |        1.000 |",
		"| rollup-5m |   100 |       0.1000 |",
		"| samples/s per core, level 2h (1 jobs, 1000 samples) |     1000 |",
		"|     1.00 |             1 |",
		"|     0.50 |             1 |",
	} {
		require.Contains(t, b.String(), line)
	}
	b.Reset()
	require.NoError(t, publish(&b, true, results))
	require.Contains(t, b.String(), `"peak_rss_bytes": 2000000`)
}
