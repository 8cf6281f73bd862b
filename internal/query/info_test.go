package query_test

import (
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

func TestExemplars(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	a, b := laketest.Metric("m", "i", "a"), laketest.Metric("m", "i", "b")
	l.Write(tenant.Default, []segment.Row{
		{Labels: a, Floats: []segment.Float{{T: 10, V: 1}}, Exemplars: []exemplar.Exemplar{laketest.Exemplar(10, 1, `q"1`), laketest.Exemplar(20, 2, "two")}},
		{Labels: b, Exemplars: []exemplar.Exemplar{laketest.Exemplar(15, 9, "b")}},
		{Labels: laketest.Metric("plain"), Floats: []segment.Float{{T: 10, V: 1}}},
	})
	l.Write(tenant.Default, []segment.Row{{Labels: a, Exemplars: []exemplar.Exemplar{laketest.Exemplar(5, 0, "early"), laketest.Exemplar(10, 1, `q"1`), laketest.Exemplar(20, 3, "three")}}})
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("plain"), Floats: []segment.Float{{T: 10, V: 1}}}})
	q, err := l.ExemplarQuerier(t.Context())
	require.NoError(t, err)

	onA, onB := []*labels.Matcher{laketest.Equal("i", "a")}, []*labels.Matcher{laketest.Equal("i", "b")}
	wantA := exemplar.QueryResult{SeriesLabels: a, Exemplars: []exemplar.Exemplar{laketest.Exemplar(10, 1, `q"1`), laketest.Exemplar(20, 2, "two"), laketest.Exemplar(20, 3, "three")}}
	wantB := exemplar.QueryResult{SeriesLabels: b, Exemplars: []exemplar.Exemplar{laketest.Exemplar(15, 9, "b")}}
	for _, tc := range []struct {
		name string
		sets [][]*labels.Matcher
		want []exemplar.QueryResult
	}{
		{"one", [][]*labels.Matcher{onA}, []exemplar.QueryResult{wantA}},
		{"union", [][]*labels.Matcher{onB, onA, onA}, []exemplar.QueryResult{wantA, wantB}},
		{"all", [][]*labels.Matcher{{labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".*")}}, []exemplar.QueryResult{wantA, wantB}},
		{"none", [][]*labels.Matcher{{laketest.Equal("__name__", "plain")}, {laketest.Equal("absent", "x")}}, nil},
		{"no sets", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := q.Select(6, 20, tc.sets...)
			require.NoError(t, err)
			require.Len(t, got, len(tc.want))
			for i := range got {
				require.Equal(t, tc.want[i], got[i])
			}
		})
	}
	got, err := q.Select(math.MinInt64, 5, onA)
	require.NoError(t, err)
	require.Equal(t, []exemplar.QueryResult{{SeriesLabels: a, Exemplars: []exemplar.Exemplar{laketest.Exemplar(5, 0, "early")}}}, got)
}

func TestMetadata(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	now := laketest.Now().UnixMilli()
	row := []segment.Row{{Labels: laketest.Metric("m"), Floats: []segment.Float{{T: now, V: 1}}}}
	l.Write(tenant.Default, row, segment.Metadata{Metric: "m", Type: "gauge", Help: "new"}, segment.Metadata{Metric: "z", Type: "counter", Help: "z", Unit: "s"})
	l.Write(tenant.Default, row, segment.Metadata{Metric: "m", Type: "gauge", Help: "new"}, segment.Metadata{Metric: "m", Type: "counter", Help: "old"})
	l.Write("neighbour", row, segment.Metadata{Metric: "secret", Type: "gauge"})
	m, z := []metadata.Metadata{{Type: "counter", Help: "old"}, {Type: "gauge", Help: "new"}}, []metadata.Metadata{{Type: "counter", Help: "z", Unit: "s"}}
	for _, tc := range []struct {
		name, metric string
		want         map[string][]metadata.Metadata
	}{
		{"all", "", map[string][]metadata.Metadata{"m": m, "z": z}},
		{"one", "z", map[string][]metadata.Metadata{"z": z}},
		{"unknown", "x", map[string][]metadata.Metadata{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := l.Metadata(t.Context(), tc.metric)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestStats(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	now := laketest.Now().UnixMilli()
	at := func(back int64) []segment.Float { return []segment.Float{{T: now - back, V: 1}} }
	l.Write(tenant.Default, []segment.Row{
		{Labels: laketest.Metric("a", "job", "x"), Floats: at(5000)}, {Labels: laketest.Metric("a", "job", "yy"), Floats: at(4000)}, {Labels: laketest.Metric("b", "job", "x"), Floats: at(3000)},
	})
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("a", "job", "x"), Floats: at(1000)}})
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("ancient"), Floats: at(10 * time.Hour.Milliseconds())}})
	s, err := l.Stats(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, uint64(3), s.NumSeries)
	require.Equal(t, now-5000, s.MinTime)
	require.Equal(t, now-1000, s.MaxTime)
	require.Equal(t, &index.PostingsStats{
		CardinalityMetricsStats: []index.Stat{{Name: "a", Count: 2}, {Name: "b", Count: 1}},
		CardinalityLabelStats:   []index.Stat{{Name: "__name__", Count: 2}, {Name: "job", Count: 2}},
		LabelValueStats:         []index.Stat{{Name: "job", Count: 4}, {Name: "__name__", Count: 3}},
		LabelValuePairsStats:    []index.Stat{{Name: "__name__=a", Count: 2}, {Name: "job=x", Count: 2}},
		NumLabelPairs:           4,
	}, s.IndexPostingStats)
}

func TestEngineAndMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	store := laketest.NewDir(t)
	l := laketest.New(t, store, query.Settings{})
	for i := range 3 {
		l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: 1000, V: float64(i)}}}})
	}
	st, err := query.New(query.Settings{MaxSamples: 2}, store, reg, slog.New(slog.DiscardHandler), laketest.Now)
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	q, err := l.Engine().NewInstantQuery(t.Context(), l, nil, "sum(m)", time.UnixMilli(2000))
	require.NoError(t, err)
	res := q.Exec(t.Context())
	require.NoError(t, res.Err)
	require.Equal(t, 3.0, res.Value.(promql.Vector)[0].F)
	q.Close()

	q, err = st.Engine().NewInstantQuery(t.Context(), st, nil, "sum(m)", time.UnixMilli(2000))
	require.NoError(t, err)
	var lerr *query.LimitError
	require.ErrorAs(t, q.Exec(t.Context()).Err, &lerr)
	q.Close()
	n, err := testutil.GatherAndCount(reg, "promlake_query_storage_seconds", "promlake_query_storage_errors_total", "promlake_query_segments_read_total")
	require.NoError(t, err)
	require.Equal(t, 3, n, "push, the failed push, segments")
}
