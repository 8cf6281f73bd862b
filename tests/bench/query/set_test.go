package query

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// TestSets: each question of a data set can be parsed, and lies within the data.
func TestSets(t *testing.T) {
	for _, f := range []Flags{{Set: hosts, Hosts: 20, Span: 8 * time.Hour}, {Set: tsbs, Hosts: 100, Span: 24 * time.Hour}, {Set: tsbs, Hosts: 8, Span: 20 * time.Minute}} {
		s, err := f.scale()
		require.NoError(t, err)
		require.Equal(t, 1, s.months())
		for _, q := range s.questions() {
			all := q.Variants
			if len(all) == 0 {
				all = []question{q}
			}
			for i, v := range all {
				require.Equal(t, v, q.variant(i))
				_, err := parser.NewParser(parser.Options{}).ParseExpr(v.Text)
				require.NoError(t, err, v.Text)
				require.False(t, v.Start.Before(s.begin()), v.Text)
				if f.Span > time.Hour {
					require.False(t, v.End.After(s.end()), v.Text)
				}
			}
			require.Equal(t, q.variant(0), q.variant(len(all)), "they repeat")
		}
	}
	require.Equal(t, 4, scale{Series: 10, Samples: 100, History: 90 * 24 * time.Hour}.months())
	s, err := (&Flags{Set: hosts, Hosts: 20, Span: 8 * time.Hour}).scale()
	require.NoError(t, err)
	require.Equal(t, 1920, s.Samples)
	require.Equal(t, 479*time.Minute, s.questions()[0].End.Sub(s.questions()[0].Start))
}

// TestTSBS decodes the requests of a short run: each host has ten metrics with the tags of TSBS,
// whose values are whole numbers from 0 to 100, and a request has 10,000 of them, each with its
// labels.
func TestTSBS(t *testing.T) {
	s, err := (&Flags{Set: tsbs, Hosts: 100, Span: 20 * time.Minute}).scale()
	require.NoError(t, err)
	var mu sync.Mutex
	last, requests, tags := map[string]int64{}, 0, map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r, err := remote.DecodeWriteRequest(req.Body)
		if err != nil {
			panic(err)
		}
		mu.Lock()
		defer mu.Unlock()
		requests++
		if len(r.Timeseries) != 10_000 {
			http.Error(w, "unexpected size", http.StatusBadRequest)
		}
		for _, ts := range r.Timeseries {
			var id []string
			for _, l := range ts.Labels {
				tags[l.Name] = true
				if l.Name == "__name__" || l.Name == "hostname" {
					id = append(id, l.Value)
				}
			}
			k := strings.Join(id, " ")
			if len(ts.Samples) != 1 || !slices.IsSortedFunc(ts.Labels, func(a, b prompb.Label) int { return strings.Compare(a.Name, b.Name) }) {
				http.Error(w, "unexpected series "+k, http.StatusBadRequest)
			}
			for _, v := range ts.Samples {
				if before, ok := last[k]; v.Value < 0 || v.Value > 100 || v.Value != float64(int(v.Value)) || ok && v.Timestamp != before+10_000 {
					http.Error(w, "unexpected sample of "+k, http.StatusBadRequest)
				}
				last[k] = v.Timestamp
			}
		}
	}))
	defer srv.Close()
	samples, err := feedSlices(t.Context(), srv.URL, s.tsbsSeries(), s.begin(), s.end(), tsbsSlice, apart)
	require.NoError(t, err)
	require.EqualValues(t, 1000*120, samples)
	require.Equal(t, 12, requests)
	require.Len(t, last, 1000)
	require.Len(t, tags, 11)
	require.Contains(t, last, "cpu_usage_guest_nice host_99")
	require.Equal(t, s.tsbsSeries()[17].take(s.end().UnixMilli(), nil), s.tsbsSeries()[17].take(s.end().UnixMilli(), nil), "every run generates the same")
}

func TestComparisons(t *testing.T) {
	life := func(load float64) prepared {
		return prepared{Disk: 2e6, Life: disk.Life{Samples: 1e6, Series: 1000, Load: load, LoadRSS: 1e6}}
	}
	r := &report{
		Scale: scale{Set: tsbs, Hosts: 100, Samples: 8640}, Targets: []string{server.Promlake, server.VictoriaMetrics},
		Prepared: []prepared{life(1), life(2)}, Questions: []question{{Name: "one"}}, PeakRSS: []uint64{3e6, 4e6},
		Cells: cells{{{Warm: []float64{0.003}, Cold: 0.1}, {Warm: []float64{0.004}, Cold: 0.2}}},
		Mix:   []mix{{Queries: 10, Seconds: 2, CPU: 1, P99: 2}, {Queries: 20, Seconds: 2, CPU: 3, P99: 4}},
	}
	var got []string
	for _, c := range r.comparisons() {
		got = append(got, strings.Join(table.Comparisons([]table.Comparison{c})[1], " | "))
	}
	require.Equal(t, []string{
		"TSBS cpu-only, 100 hosts × 8,640 samples: load | CPU-s per million samples | 1 | 2 | 0.50",
		"TSBS cpu-only, 100 hosts × 8,640 samples: load, peak memory | MB | 1 | 1 | 1.00",
		"one | ms | 3 | 4 | 0.75",
		"one, cold | ms | 100 | 200 | 0.50",
		"TSBS cpu-only, 100 hosts × 8,640 samples: queries, peak memory | MB | 3 | 4 | 0.75",
		"dashboard mix, 8 clients | CPU ms per query | 1 | 3 | 0.33",
		"dashboard mix, 8 clients | ms from answer to answer | 200 | 100 | 2.00",
		"dashboard mix, 8 clients, 99th percentile | ms | 2 | 4 | 0.50",
	}, got)
	r.Scale = scale{Series: 10, Samples: 10}
	require.Equal(t, table.Comparison{Name: "data of the mixed queries, all of the disk", Unit: "MB", Promlake: 2, Peer: 2}, r.comparisons()[0])
}

func TestTripRows(t *testing.T) {
	r := &report{
		Questions: []question{{Name: "one"}},
		Trips:     []trip{{Requests: 6, Trips: 3, Took: map[time.Duration]float64{0: 0.0104, 5 * time.Millisecond: 0.026, 30 * time.Millisecond: 0.104}}},
	}
	require.Equal(t, [][]string{
		{"Promlake over a bucket, cold", "requests", "round trips", "ms, 0 ms a request", "ms, 5 ms a request", "ms, 30 ms a request"},
		{"one", "6", "3", "10", "26", "104"},
	}, r.tripRows())
	require.Equal(t, "6 requests in 3 round trips, 10 ms with 0 ms a request, 26 ms with 5 ms a request, 104 ms with 30 ms a request", r.Trips[0].String())
}
