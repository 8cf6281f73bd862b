package query_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// execDay evaluates a query over the day.
func execDay(ctx context.Context, t *testing.T, st *query.Stage, text string) *promql.Result {
	t.Helper()
	q, err := st.Engine().NewRangeQuery(ctx, st, nil, text, time.UnixMilli(0), time.UnixMilli(coldDay-1), 5*time.Minute)
	require.NoError(t, err)
	t.Cleanup(q.Close)
	return q.Exec(ctx)
}

// TestForecast: a query that cannot be answered within its time or its memory is refused before any
// of its samples is fetched, and its error names what it needs; other queries are answered.
func TestForecast(t *testing.T) {
	dir := laketest.NewDir(t)
	writeColdBlock(t, laketest.New(t, dir, query.Settings{}), 4, 100, 3000)
	const rate, one = `sum by (g) (rate(m{job="job-01"}[10m]))`, `m{job="job-01",instance="host-0007:9100"}`
	for _, tc := range []struct {
		name, text string
		settings   query.Settings
		left       time.Duration // of the caller; 0 = no end
		local      bool
		flag       string // "" = answered
		says       string // a pattern of the error
	}{
		{"bytes", rate, query.Settings{MinPushedSamples: -1, FetchBytesPerSecond: 1000, Timeout: time.Minute}, 0, false, "--query.timeout", `bytes to fetch \(--query.fetch-bytes-per-second\)`},
		{"bytes of a kept selector", rate, query.Settings{MinPushedSamples: math.MaxInt64, FetchBytesPerSecond: 1000, Timeout: time.Minute}, 0, false, "--query.timeout", "bytes to fetch"},
		{"samples", rate, query.Settings{MinPushedSamples: -1, SamplesPerSecond: 1000, Threads: 2, Timeout: time.Minute}, 0, false, "--query.timeout", `samples to evaluate \(--query.samples-per-second\)`},
		{"samples in place", rate, query.Settings{MinPushedSamples: -1, SamplesPerSecond: 1000, Threads: 2, Timeout: time.Minute}, 0, true, "--query.timeout", "least: 0 bytes to fetch"},
		{"the caller's time", rate, query.Settings{MinPushedSamples: -1, SamplesPerSecond: 1000, Threads: 2, Timeout: time.Hour}, time.Minute, false, "--query.timeout", `limit of \d+ seconds that are left to it, it needs 150 at least`},
		{"more threads", rate, query.Settings{MinPushedSamples: -1, SamplesPerSecond: 1000, Threads: 8, Timeout: time.Minute}, 0, false, "", ""},
		{"more time", rate, query.Settings{MinPushedSamples: -1, SamplesPerSecond: 1000, Threads: 2, Timeout: time.Hour}, 0, false, "", ""},
		{"fewer series", one, query.Settings{SamplesPerSecond: 1000, Threads: 2, Timeout: time.Minute}, 0, false, "", ""},
		{"values", `quantile_over_time(0.5, m{job="job-01"}[10m]) * 2`, query.Settings{MinPushedSamples: -1, QueryMemoryBytes: 1000}, 0, false, "--query.max-memory", "limit of 1000 bytes"},
		{"samples in memory", rate, query.Settings{MinPushedSamples: math.MaxInt64, MaxSamples: 100_000}, 0, false, "--query.max-samples", "it needs 299000"},
		{"in parts", rate, query.Settings{MinPushedSamples: -1, QueryMemoryBytes: 100 * 288 * 8}, 0, false, "", ""},
		{"everything", rate, query.Settings{MinPushedSamples: -1}, 0, false, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			distant := laketest.NewDistant(dir, 0)
			var store objstore.Store = distant
			if tc.local {
				store = dir
			}
			ctx := t.Context()
			if tc.left > 0 {
				limited, cancel := context.WithTimeout(ctx, tc.left)
				defer cancel()
				ctx = limited
			}
			res := execDay(ctx, t, laketest.New(t, store, tc.settings).Stage, tc.text)
			if tc.flag == "" {
				require.NoError(t, res.Err)
				require.Positive(t, distant.Count["samples"])
				return
			}
			var limit *query.LimitError
			require.ErrorAs(t, res.Err, &limit)
			require.True(t, limit.QueryLimit())
			require.Equal(t, tc.flag, limit.Flag)
			require.Greater(t, limit.Needed, limit.Value)
			require.Regexp(t, tc.says, res.Err.Error())
			require.Zero(t, distant.Count["samples"], "refused before it is read")
		})
	}
}

// TestForecastOfCached: the forecast counts no fetch time for bytes that are already local.
func TestForecastOfCached(t *testing.T) {
	dir := laketest.NewDir(t)
	writeColdBlock(t, laketest.New(t, dir, query.Settings{}), 4, 100, 3000)
	const text = `sum by (g) (rate(m{job="job-01"}[10m]))`
	l := laketest.New(t, laketest.NewDistant(dir, 0), query.Settings{MinPushedSamples: -1, FetchBytesPerSecond: 1000, Timeout: time.Hour})
	short, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorContains(t, execDay(short, t, l.Stage, text).Err, "bytes to fetch")
	require.NoError(t, execDay(t.Context(), t, l.Stage, text).Err)
	require.NoError(t, execDay(short, t, l.Stage, text).Err)
}

// TestForecastOfRollups: where rollups stand for samples, the stand-ins count.
func TestForecastOfRollups(t *testing.T) {
	for _, remote := range []bool{false, true} {
		var store objstore.Store = laketest.NewDir(t)
		if remote {
			store = laketest.NewDistant(store, 0)
		}
		l := laketest.New(t, store, query.Settings{MinPushedSamples: -1, SamplesPerSecond: 100, Threads: 1, Timeout: 100 * time.Second})
		var rows []segment.Row
		for i := range 20 {
			r := segment.Row{Labels: laketest.Metric("m", "instance", fmt.Sprint(i))}
			for j := range int64(24 * 60) {
				r.Floats = append(r.Floats, segment.Float{T: j*minute + 1, V: float64(j % 100)})
			}
			rows = append(rows, r)
		}
		l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, Rollups: true}, rows)
		at := func(text string) error {
			return l.Exec(t.Context(), laketest.Query{Text: text, End: time.UnixMilli(24*60*minute - 17*minute)}).Err
		}
		require.NoError(t, at("max(max_over_time(m[1d]))"), "2,000 stand-ins and samples")
		require.ErrorContains(t, at("max(sum_over_time(m[1d]))"), "samples to evaluate", "28,460 samples")
	}
}
