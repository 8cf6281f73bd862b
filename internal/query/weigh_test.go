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
)

// weigh returns the samples of each series that matches one of sets, and the bytes of all.
func (l *lake) weigh(sets [][]*labels.Matcher, mint, maxt int64) (samples map[string]int64, bytes float64) {
	l.tb.Helper()
	samples = map[string]int64{}
	require.NoError(l.tb, l.Weigh(l.tb.Context(), sets, mint, maxt, func(lset labels.Labels, n int64, b float64) {
		require.NotContains(l.tb, samples, lset.String(), "visited twice")
		require.Positive(l.tb, n)
		require.Positive(l.tb, b)
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

// TestWeigh compares with a naive count in every layout, before and after deletions.
func TestWeigh(t *testing.T) {
	end := testNow().UnixMilli()
	begin := end - 24*60*minute
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			rows := randomRows(rand.New(rand.NewPCG(5, 6)))
			store := newDirStore(t)
			l := newLake(t, store, query.Settings{})
			layout.write(l, tenant.Default, rows)
			size := int64(0)
			for o, err := range store.List(t.Context(), "v1/", "") {
				require.NoError(t, err)
				size += o.Size
			}
			got, bytes := l.weigh(everything, begin, end)
			want := counts(rows, begin, end)
			if layout.name == "mixture" { // some samples are stored twice
				require.Equal(t, namesIn(want), namesIn(got))
			} else {
				require.Equal(t, want, got)
			}
			require.InDelta(t, float64(size), bytes, float64(size)/5, "all bytes but those of manifests belong to series")

			one, _ := l.weigh([][]*labels.Matcher{{equal("i", "7")}, {equal("i", "8"), equal("job", "nothing")}, {equal("i", "9")}}, begin, end)
			require.Len(t, one, 2)
			none, _ := l.weigh(everything, end+minute, end+2*minute)
			require.Empty(t, none)
			none, _ = l.weigh(nil, begin, end)
			require.Empty(t, none)

			// Of a part of an object, samples are taken to be evenly spaced.
			part, _ := l.weigh(everything, end-5*60*minute, end-2*60*minute)
			for name, n := range counts(rows, end-5*60*minute, end-2*60*minute) {
				require.InDelta(t, float64(n), float64(part[name]), float64(n)*pick(layout.name == "mixture", 0.8, 0.35), name)
			}

			deleteAll(l)
			got, _ = l.weigh(everything, begin, end)
			want = counts(without(rows), begin, end)
			require.Equal(t, namesIn(want), namesIn(got))
			if layout.name != "mixture" {
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
	l := newLake(t, newDirStore(t), query.Settings{MaxSeries: 2})
	var rows []segment.Row
	for i := range 3 {
		rows = append(rows, segment.Row{Labels: metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: testNow().UnixMilli(), V: 1}}})
	}
	l.write(tenant.Default, rows)
	mint, maxt := l.Recent()
	require.Equal(t, testNow().UnixMilli(), maxt)
	require.Greater(t, maxt-mint, time.Minute.Milliseconds())
	err := l.Weigh(t.Context(), everything, mint, maxt, func(labels.Labels, int64, float64) {})
	var limit *request.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "query.max-series")
	one, _ := l.weigh([][]*labels.Matcher{{equal("i", "1")}}, mint, maxt)
	require.Equal(t, map[string]int64{`{__name__="m", i="1"}`: 1}, one)
}
