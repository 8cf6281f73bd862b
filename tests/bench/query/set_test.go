package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
	for _, f := range []Flags{{Set: hosts, Hosts: 20, Span: 8 * time.Hour}, {Set: hosts, Hosts: 8, Span: 20 * time.Minute}} {
		s, err := f.scale()
		require.NoError(t, err)
		require.Equal(t, 1, s.months())
		for _, q := range s.questions() {
			all := q.Variants
			if len(all) == 0 {
				all = []Question{q}
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

// oneSeries is a set of another benchmark that holds as many samples as fakeCompact says.
func oneSeries() *Set {
	at := time.Date(2026, time.March, 3, 0, 0, 0, 0, time.UTC)
	return &Set{
		Name: "one series", Begin: at, Interval: 10 * time.Second, Samples: smallSamples, Slice: 100 * time.Second, Apart: true,
		Series: func(add func([]prompb.Label, func() float64)) {
			add([]prompb.Label{{Name: "__name__", Value: "x"}}, func() float64 { return 1 })
		},
		Questions: []Question{{Name: "a", Text: "x", Start: at, End: at}, {Name: "b", Each: true, Variants: slices.Repeat([]Question{{Text: "x", Start: at, End: at}}, turnMost+1)}},
	}
}

// TestSetFeed decodes the requests of a set of another benchmark: its samples lie a millisecond
// after the steps, in order of time, each with its labels.
func TestSetFeed(t *testing.T) {
	last, requests := int64(0), 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r, err := remote.DecodeWriteRequest(req.Body)
		if err != nil {
			panic(err)
		}
		requests++
		for _, ts := range r.Timeseries {
			s := ts.Samples[0]
			if len(ts.Samples) != 1 || name(ts.Labels) != "x" || s.Timestamp%10_000 != 1 || last > 0 && s.Timestamp != last+10_000 {
				http.Error(w, fmt.Sprintf("unexpected sample %v", ts), http.StatusBadRequest)
			}
			last = s.Timestamp
		}
	}))
	defer srv.Close()
	samples, series, err := oneSeries().feed(t.Context(), srv.URL)
	require.NoError(t, err)
	require.Equal(t, []int64{smallSamples, 1, smallSamples / 10}, []int64{samples, series, int64(requests)})
	require.Equal(t, oneSeries().End().UnixMilli(), last+10_000-1)
}

// TestCompareSet measures a set of another benchmark: all of its variants in each turn if it says
// so, and nothing but the load if it has no questions.
func TestCompareSet(t *testing.T) {
	f := fakes(t, "2", "3", "2")
	f.Cold, f.Questions, f.Only, f.Data = false, nil, []string{server.Promlake}, t.TempDir()
	names := func(set *Set) (all []string) {
		rows, err := f.CompareSet(t.Context(), set)
		require.NoError(t, err)
		for _, c := range rows {
			all = append(all, c.Name+", "+c.Unit)
		}
		return all
	}
	require.Subset(t, names(oneSeries()), []string{"one series: load, CPU-s per million samples", "a, CPU ms", "a, ms", "b, CPU ms", "b, ms", "one series: queries, peak memory, MB"})
	loaded := oneSeries()
	loaded.Questions = nil
	require.NotContains(t, names(loaded), "one series: queries, peak memory, MB")
	r, err := f.measureAll(t.Context(), scale{Set: loaded.Name, Samples: loaded.Samples, described: oneSeries()})
	require.NoError(t, err)
	require.Len(t, r.Cells[1][0].Warm, f.Rounds*(turnMost+1))
}

func TestComparisons(t *testing.T) {
	life := func(load float64) prepared {
		return prepared{Disk: 2e6, Life: disk.Life{Samples: 1e6, Series: 1000, Load: load, LoadRSS: 1e6}}
	}
	r := &report{
		Scale: scale{Set: "data", described: &Set{Name: "data"}}, Targets: []string{server.Promlake, server.VictoriaMetrics},
		Prepared: []prepared{life(1), life(2)}, Questions: []Question{{Name: "one"}}, PeakRSS: []uint64{3e6, 4e6},
		Cells: cells{{{Warm: []float64{0.003}, Cold: 0.1}, {Warm: []float64{0.004}, Cold: 0.2}}},
		Mix:   []mix{{Queries: 10, Seconds: 2, CPU: 1, P99: 2}, {Queries: 20, Seconds: 2, CPU: 3, P99: 4}},
	}
	var got []string
	for _, c := range r.comparisons() {
		got = append(got, strings.Join(table.Comparisons([]table.Comparison{c})[1], " | "))
	}
	require.Equal(t, []string{
		"data: load | CPU-s per million samples | 1 | 2 | 0.50",
		"data: load, peak memory | MB | 1 | 1 | 1.00",
		"one | CPU ms | 0 | – | –",
		"one | ms | 3 | 4 | 0.75",
		"one, cold | ms | 100 | 200 | 0.50",
		"data: queries, peak memory | MB | 3 | 4 | 0.75",
		"dashboard mix, 8 clients | CPU ms per query | 1 | 3 | 0.33",
		"dashboard mix, 8 clients | ms from answer to answer | 200 | 100 | 2.00",
		"dashboard mix, 8 clients, 99th percentile | ms | 2 | 4 | 0.50",
	}, got)
	r.Scale = scale{Series: 10, Samples: 10}
	require.Equal(t, table.Comparison{Name: "data of the mixed queries, all of the disk", Unit: "MB", Promlake: 2, Peer: 2}, r.comparisons()[0])
}

func TestTripRows(t *testing.T) {
	r := &report{
		Questions: []Question{{Name: "one"}},
		Trips:     []trip{{Requests: 6, Trips: 3, Took: map[time.Duration]float64{0: 0.0104, 5 * time.Millisecond: 0.026, 30 * time.Millisecond: 0.104}}},
	}
	require.Equal(t, [][]string{
		{"Promlake over a bucket, cold", "requests", "round trips", "ms, 0 ms a request", "ms, 5 ms a request", "ms, 30 ms a request"},
		{"one", "6", "3", "10", "26", "104"},
	}, r.tripRows())
	require.Equal(t, "6 requests in 3 round trips, 10 ms with 0 ms a request, 26 ms with 5 ms a request, 104 ms with 30 ms a request", r.Trips[0].String())
}
