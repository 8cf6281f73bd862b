package query_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/tests/support/laketest"
)

// weigh returns the samples of each series that matches one of sets, and the bytes of all.
func weigh(l *laketest.Lake, sets [][]*labels.Matcher, mint, maxt int64) (samples map[string]int64, bytes float64) {
	l.TB.Helper()
	samples = map[string]int64{}
	require.NoError(l.TB, l.Weigh(l.TB.Context(), sets, mint, maxt, func(lset labels.Labels, n int64, b float64, _ int64) {
		require.NotContains(l.TB, samples, lset.String(), "visited twice")
		require.Positive(l.TB, n)
		require.Positive(l.TB, b)
		samples[lset.String()] = n
		bytes += b
	}))
	return samples, bytes
}

// everything selects all series.
var everything = [][]*labels.Matcher{{}}

// counts are the samples of rows within [mint, maxt].
func counts(rows []segment.Row, mint, maxt int64) map[string]int64 {
	out := map[string]int64{}
	for _, r := range rows {
		n := int64(0)
		for _, f := range r.Floats {
			if f.T >= mint && f.T <= maxt {
				n++
			}
		}
		for _, h := range r.Hists {
			if h.T >= mint && h.T <= maxt {
				n++
			}
		}
		if n > 0 {
			out[r.Labels.String()] = n
		}
	}
	return out
}

// lasts are the times of the last samples of rows within [mint, maxt].
func lasts(rows []segment.Row, mint, maxt int64) map[string]int64 {
	out := map[string]int64{}
	for _, r := range rows {
		last := func(at int64) {
			if at >= mint && at <= maxt {
				out[r.Labels.String()] = max(out[r.Labels.String()], at)
			}
		}
		for _, f := range r.Floats {
			last(f.T)
		}
		for _, h := range r.Hists {
			last(h.T)
		}
	}
	return out
}

// TestWeigh compares with a naive count in every layout, before and after deletions.
func TestWeigh(t *testing.T) {
	end := laketest.Now().UnixMilli()
	begin := end - 24*60*minute
	for _, layout := range laketest.Layouts {
		t.Run(layout.Name, func(t *testing.T) {
			rows := laketest.RandomRows(rand.New(rand.NewPCG(5, 6)))
			store := laketest.NewDir(t)
			l := laketest.New(t, store, query.Settings{})
			layout.Write(l, tenant.Default, rows)
			size := int64(0)
			for o, err := range store.List(t.Context(), "v1/", "") {
				require.NoError(t, err)
				size += o.Size
			}
			got, bytes := weigh(l, everything, begin, end)
			want := counts(rows, begin, end)
			if layout.Name == "mixture" { // some samples are stored twice
				require.Equal(t, namesIn(want), namesIn(got))
			} else {
				require.Equal(t, want, got)
			}
			last := func(rows []segment.Row, exact bool) {
				require.NoError(t, l.Weigh(t.Context(), everything, begin, end, func(lset labels.Labels, _ int64, _ float64, got int64) {
					want := lasts(rows, begin, end)[lset.String()]
					require.True(t, got == want || !exact && got > want && got <= end, "%s: got %d, want %d", lset, got, want)
				}))
			}
			last(rows, true)
			require.InDelta(t, float64(size), bytes, float64(size)/5, "all bytes but those of manifests belong to series")

			one, _ := weigh(l, [][]*labels.Matcher{{laketest.Equal("i", "7")}, {laketest.Equal("i", "8"), laketest.Equal("job", "nothing")}, {laketest.Equal("i", "9")}}, begin, end)
			require.Len(t, one, 2)
			none, _ := weigh(l, everything, end+minute, end+2*minute)
			require.Empty(t, none)
			none, _ = weigh(l, nil, begin, end)
			require.Empty(t, none)

			// Of a part of an object, samples are taken to be evenly spaced.
			part, _ := weigh(l, everything, end-5*60*minute, end-2*60*minute)
			for name, n := range counts(rows, end-5*60*minute, end-2*60*minute) {
				require.InDelta(t, float64(n), float64(part[name]), float64(n)*laketest.Pick(layout.Name == "mixture", 0.8, 0.35), name)
			}

			laketest.DeleteAll(l)
			got, _ = weigh(l, everything, begin, end)
			want = counts(laketest.Without(rows), begin, end)
			last(laketest.Without(rows), false)
			require.Equal(t, namesIn(want), namesIn(got))
			if layout.Name != "mixture" {
				for name, n := range want {
					require.InDelta(t, float64(n), float64(got[name]), float64(n)*0.2, name)
				}
			}
		})
	}
}

func namesIn(m map[string]int64) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

// TestWeighIsLimited: counting has the limits of a query.
func TestWeighIsLimited(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{MaxSeries: 2})
	var rows []segment.Row
	for i := range 3 {
		rows = append(rows, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: laketest.Now().UnixMilli(), V: 1}}})
	}
	l.Write(tenant.Default, rows)
	mint, maxt := l.Recent()
	require.Equal(t, laketest.Now().UnixMilli(), maxt)
	require.Greater(t, maxt-mint, time.Minute.Milliseconds())
	err := l.Weigh(t.Context(), everything, mint, maxt, func(labels.Labels, int64, float64, int64) {})
	var limit *request.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "query.max-series")
	one, _ := weigh(l, [][]*labels.Matcher{{laketest.Equal("i", "1")}}, mint, maxt)
	require.Equal(t, map[string]int64{`{__name__="m", i="1"}`: 1}, one)
}
