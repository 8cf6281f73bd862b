package query_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestEstimate: the estimate of a query counts each selector, and all that a remote store charges.
func TestEstimate(t *testing.T) {
	dir := laketest.NewDir(t)
	laketest.Layouts[1].Write(laketest.New(t, dir, query.Settings{}), tenant.Default, laketest.PushRows())
	local, remote := laketest.New(t, dir, query.Settings{}), laketest.New(t, laketest.NewDistant(dir, 0), query.Settings{})
	estimate := func(l *laketest.Lake, text string) request.Estimate {
		e, err := l.Estimate(t.Context(), question(text))
		require.NoError(t, err, text)
		return e
	}
	one := estimate(local, "m1")
	require.Equal(t, int64(12), one.SeriesTouched)
	require.LessOrEqual(t, one.SamplesRead, int64(12*61), "a sample at each step")
	require.Positive(t, one.SamplesRead)
	require.Positive(t, one.Bytes)
	require.Zero(t, one.Requests)
	require.Zero(t, one.FunctionMilliseconds)
	require.Zero(t, one.Dollars)
	for text, times := range map[string]int64{
		"m1 + m1": 2, "vector(1)": 0,
		// what only upstream's engine evaluates
		"start_timestamp(m1)": 1, "info(m1)": 1, "rate(m1[5m] anchored)": 1,
	} {
		e := estimate(local, text)
		require.Equal(t, times*12, e.SeriesTouched, text)
		require.Equal(t, times > 0, e.Bytes > 0, text)
	}

	cold := estimate(remote, "rate(m1[5m])")
	require.Greater(t, cold.Requests, int64(2), "the list, the manifest, and samples")
	require.Positive(t, cold.FunctionMilliseconds)
	ex, err := remote.Explain(t.Context(), question("rate(m1[5m])"))
	require.NoError(t, err)
	require.Greater(t, cold.Dollars, ex.Cost.Dollars, "the function costs something as well")
	require.Equal(t, int64(ex.Cost.Gets+ex.Cost.Lists), cold.Requests)
	require.Equal(t, ex.Cost.Bytes, cold.Bytes)
}

// TestCostLimits: a query whose estimate exceeds a limit is refused before it reads samples, by the
// lower of the limits of the request and of the settings.
func TestCostLimits(t *testing.T) {
	dir := laketest.NewDir(t)
	laketest.Layouts[1].Write(laketest.New(t, dir, query.Settings{}), tenant.Default, laketest.PushRows())
	for _, tc := range []struct {
		name       string
		set, asked request.CostLimits
		flag, says string // "": answered
	}{
		{"none", request.CostLimits{}, request.CostLimits{}, "", ""},
		{"enough", request.CostLimits{Series: 12, Samples: 1e6, Dollars: 1}, request.CostLimits{Series: 12}, "", ""},
		{"series", request.CostLimits{Series: 11}, request.CostLimits{}, "--query.max-series-touched", "query would load too many series into memory in query execution: query exceeds the limit of 11 series per query (max_series), it needs 12 at most, by its estimate"},
		{"fewer series", request.CostLimits{Series: 100}, request.CostLimits{Series: 3}, "--query.max-series-touched", "limit of 3 series"},
		{"samples", request.CostLimits{}, request.CostLimits{Samples: 5}, "--query.max-samples-read", "query would read too many samples in query execution: query exceeds the limit of 5 samples read per query (max_samples_read)"},
		{"dollars", request.CostLimits{Dollars: 1e-6}, request.CostLimits{Dollars: 1}, "--query.max-dollars", "query would cost too much in query execution: query exceeds the limit of 1 millionths of a dollar"},
	} {
		for _, pushed := range []int64{-1, 50_000} {
			store := laketest.NewDistant(dir, 0)
			l := laketest.New(t, store, query.Settings{Cost: tc.set, MinPushedSamples: pushed})
			ctx := request.With(t.Context(), request.Request{Limits: tc.asked})
			res := l.Exec(ctx, laketest.Query{Text: "sum(rate(m1[5m]))", Start: laketest.Now().Add(-time.Hour), End: laketest.Now(), Step: time.Minute})
			if tc.flag == "" {
				require.NoError(t, res.Err, tc.name)
				continue
			}
			var limit *query.LimitError
			require.ErrorAs(t, res.Err, &limit, tc.name)
			require.True(t, limit.CostLimit())
			require.Equal(t, tc.flag, limit.Flag)
			require.Contains(t, res.Err.Error(), tc.says)
			require.Zero(t, store.Count["samples"], "refused before it is read")
			require.Equal(t, 1.0, l.Counted("promlake_query_limited_total", tc.flag))
		}
	}
}
