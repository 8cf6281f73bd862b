package appender

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
)

// TestRefusesWhatPrometheusRefuses appends random samples to an appendable and to the head block of
// Prometheus: every append has the same kind of error.
func TestRefusesWhatPrometheusRefuses(t *testing.T) {
	for _, window := range []int64{0, 1_800_000} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("window=%d/seed=%d", window, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, uint64(window)))
				opts := tsdb.DefaultHeadOptions()
				opts.ChunkDirRoot = t.TempDir()
				opts.ChunkRange = 2 * 3_600_000
				opts.OutOfOrderTimeWindow.Store(window)
				opts.OutOfOrderCapMax.Store(32)
				head, err := tsdb.NewHead(nil, nil, nil, nil, opts, nil)
				require.NoError(t, err)
				defer func() { require.NoError(t, head.Close()) }()
				require.NoError(t, head.Init(0))
				ours := New(func(*Transaction) error { return nil })
				ours.SetOutOfOrderWindow(window)
				compare(t, rng, ours, head)
			})
		}
	}
}

func compare(t *testing.T, rng *rand.Rand, ours, theirs storage.AppendableV2) {
	now := int64(100 * 3_600_000)
	refs := map[string][2]storage.SeriesRef{}
	kinds := map[string]int{}
	for range 200 {
		a, b := ours.AppenderV2(t.Context()), theirs.AppenderV2(t.Context())
		used := map[string]bool{}
		for range rng.IntN(6) {
			ls := labels.FromStrings(model.MetricNameLabel, fmt.Sprintf("m%d", rng.IntN(5)))
			if used[ls.String()] {
				continue // within a transaction the head looks at committed samples only
			}
			used[ls.String()] = true
			at := now - []int64{0, 0, 0, 1000, 60_000, 1_700_000, 1_900_000, 3_500_000, 7_300_000}[rng.IntN(9)]
			v, h, fh := float64(rng.IntN(2)), (*histogram.Histogram)(nil), (*histogram.FloatHistogram)(nil)
			switch rng.IntN(10) {
			case 0:
				h = tsdbutil.GenerateTestHistogram(rng.Int64N(2))
			case 1:
				fh = tsdbutil.GenerateTestFloatHistogram(rng.Int64N(2))
			case 2:
				v = math.Float64frombits(value.StaleNaN)
			}
			o := storage.AOptions{RejectOutOfOrder: rng.IntN(4) == 0}
			ref := refs[ls.String()]
			r1, err1 := a.Append(ref[0], ls, 0, at, v, h, fh, o)
			r2, err2 := b.Append(ref[1], ls, 0, at, v, h, fh, o)
			require.Equal(t, kindOf(err2), kindOf(err1), "%s at %d: %v %v %v %+v", ls, at-now, v, h, fh, o)
			kinds[kindOf(err1)]++
			if err1 == nil {
				refs[ls.String()] = [2]storage.SeriesRef{r1, r2}
			}
		}
		if rng.IntN(5) == 0 {
			require.NoError(t, a.Rollback())
			require.NoError(t, b.Rollback())
		} else {
			require.NoError(t, a.Commit())
			require.NoError(t, b.Commit())
		}
		now += []int64{0, 1000, 15_000, 600_000}[rng.IntN(4)]
	}
	require.Greater(t, len(kinds), 1)
}

// kindOf is the kind of an error, as scrapes distinguish them.
func kindOf(err error) string {
	for _, e := range []error{storage.ErrOutOfOrderSample, storage.ErrOutOfBounds, storage.ErrTooOldSample, storage.ErrDuplicateSampleForTimestamp} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	if err != nil {
		return "other"
	}
	return ""
}

func TestTransaction(t *testing.T) {
	var got []*Transaction
	a := New(func(tx *Transaction) error { got = append(got, tx); return nil })
	ls := labels.FromStrings(model.MetricNameLabel, "m_total", "empty", "")
	app := a.AppenderV2(t.Context())
	family := []byte("m")
	opts := storage.AOptions{
		MetricFamilyName: string(family), Metadata: metadata.Metadata{Type: "counter", Help: "M."},
		Exemplars: []exemplar.Exemplar{{Labels: labels.FromStrings("trace_id", "x"), Value: 1}},
	}
	ref, err := app.Append(0, ls, 5, 10, 1, nil, nil, opts)
	require.NoError(t, err)
	_, err = app.Append(0, labels.EmptyLabels(), 0, 10, 1, nil, nil, opts)
	require.ErrorContains(t, err, "empty labelset")
	_, err = app.Append(0, ls, 0, 10, 0, &histogram.Histogram{Schema: 1, PositiveSpans: []histogram.Span{{Length: 1}}}, nil, opts)
	require.Error(t, err, "an invalid histogram")
	_, err = app.Append(0, labels.FromStrings(model.MetricNameLabel, "up"), 0, 10, 1, nil, nil, storage.AOptions{MetricFamilyName: "up\xff", Metadata: metadata.Metadata{Type: "gauge"}})
	require.NoError(t, err)
	require.NoError(t, app.Commit())
	require.Error(t, app.Commit())
	require.Len(t, got, 1)
	for i := range got[0].Samples {
		require.Equal(t, labels.FromStrings(model.MetricNameLabel, []string{"m_total", "up"}[i]), got[0].Samples[i].Labels())
		got[0].Samples[i].series = nil
	}
	var described []segment.Metadata
	for _, f := range got[0].Metadata {
		described = append(described, f.Metadata)
	}
	require.Equal(t, []segment.Metadata{{Metric: "m", Type: "counter", Help: "M."}, {Metric: "up", Type: "gauge"}}, described)
	got[0].Metadata = nil
	require.Equal(t, []*Transaction{{
		Samples:   []Sample{{Rare: &Rare{ST: 5}, T: 10, V: 1}, {T: 10, V: 1}},
		Exemplars: []Exemplar{{0, exemplar.Exemplar{Labels: labels.FromStrings("trace_id", "x"), Value: 1, Ts: 10, HasTs: true}}},
	}}, got)

	// Of two transactions that append to the same series, the one that is committed late loses.
	early, late := a.AppenderV2(t.Context()), a.AppenderV2(t.Context())
	_, err = early.Append(ref, ls, 0, 20, 1, nil, nil, storage.AOptions{})
	require.NoError(t, err)
	_, err = late.Append(ref, ls, 0, 30, 1, nil, nil, storage.AOptions{})
	require.NoError(t, err)
	require.NoError(t, late.Commit())
	require.NoError(t, early.Commit())
	require.Len(t, got, 2)

	// Nothing that was rolled back counts.
	gone := a.AppenderV2(t.Context())
	_, err = gone.Append(ref, ls, 0, 40, 1, nil, nil, storage.AOptions{})
	require.NoError(t, err)
	require.NoError(t, gone.Rollback())
	stale := a.AppenderV2(t.Context())
	_, err = stale.Append(ref, ls, 0, 40, math.Float64frombits(value.StaleNaN), nil, nil, storage.AOptions{RejectOutOfOrder: true})
	require.NoError(t, err)
	require.NoError(t, stale.Commit())
	require.Len(t, got, 3)
}

// seriesIn returns the number of series of a table.
func seriesIn(t *table) int { return len(t.byRef) - 1 - len(t.free) }

// TestForgets: series without samples for two hours take no memory.
func TestForgets(t *testing.T) {
	a := New(func(*Transaction) error { return nil })
	for i := range 1000 {
		app := a.AppenderV2(t.Context())
		_, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, "m", "i", fmt.Sprint(i)), 0, int64(i)*60_000, 1, nil, nil, storage.AOptions{})
		require.NoError(t, err)
		require.NoError(t, app.Commit())
	}
	all := &a.order.series
	require.Less(t, seriesIn(all), 140)
	require.Len(t, all.byHash, seriesIn(all))
	require.Less(t, len(all.byRef), 400, "references are given again")
}

// TestTable finds random series, some of which have one hash, as a map does.
func TestTable(t *testing.T) {
	rng, all, want := rand.New(rand.NewPCG(3, 4)), newTable(), map[string]*state{}
	all.hash = func(ls labels.Labels) uint64 {
		i, err := strconv.Atoi(ls.Get("i"))
		require.NoError(t, err)
		return uint64(i%1000) * 0x9e3779b97f4a7c15
	}
	for range 50_000 {
		i := rng.IntN(1500)
		ls := labels.FromStrings("i", fmt.Sprint(i))
		got, at := all.find(ls)
		require.Same(t, want[ls.String()], got)
		switch {
		case got == nil:
			s := &state{labels: ls}
			all.add(s, at)
			want[ls.String()] = s
		case rng.IntN(2) == 0:
			all.remove(got)
			delete(want, ls.String())
		default:
			require.Same(t, got, all.byRef[got.ref])
		}
		require.Equal(t, len(want), seriesIn(&all))
		require.LessOrEqual(t, len(all.byHash)-len(want), 500, "places that are kept")
	}
	require.Greater(t, len(all.byHash), 700)
}

// TestExemplars: of the exemplars of scrapes, those are stored that Prometheus stores.
func TestExemplars(t *testing.T) {
	upstream := teststorage.New(t)
	var got []exemplar.Exemplar
	a := New(func(tx *Transaction) error {
		for _, e := range tx.Exemplars {
			got = append(got, e.Exemplar)
		}
		return nil
	})
	ex := func(v float64, t int64, lset ...string) exemplar.Exemplar {
		return exemplar.Exemplar{Labels: labels.FromStrings(lset...), Value: v, Ts: t, HasTs: t != 0}
	}
	lset := labels.FromStrings("__name__", "m")
	for i, es := range [][]exemplar.Exemplar{
		{ex(1, 0, "trace", "a")},
		{ex(1, 0, "trace", "a")},
		{ex(1, 0, "trace", "a")},
		{ex(2, 0, "trace", "a")},
		{ex(2, 0, "trace", "b")},
		{ex(2, 0, "trace", "a")},
		{},
		{ex(2, 0, "trace", "a")},
		{ex(3, 9_500, "trace", "c")},
		{ex(3, 9_500, "trace", "c")},
		{ex(4, 9_200, "trace", "older")},
		{ex(3, 9_700, "trace", "c"), ex(5, 9_800)},
		{ex(3, 9_700, "trace", "c"), ex(5, 9_800)},
		{ex(5, 9_800, "trace", "y"), ex(5, 9_800, "trace", "z"), ex(4, 9_800, "trace", "z")},
		{ex(5, 9_800, "trace", "z"), ex(5, 9_800, "trace", "y")},
		{ex(5, 0)},
	} {
		at := int64(i+1) * 1000
		for _, to := range []storage.AppendableV2{upstream, a} {
			app := to.AppenderV2(t.Context())
			opts := storage.AppendV2Options{}
			for _, e := range es {
				if !e.HasTs {
					e.Ts = at // as a scrape does
				}
				opts.Exemplars = append(opts.Exemplars, e)
			}
			_, err := app.Append(0, lset, 0, at, 1, nil, nil, opts)
			if to == storage.AppendableV2(a) {
				require.NoError(t, err)
			} // upstream reports exemplars that it leaves out
			require.NoError(t, app.Commit())
		}
	}
	q, err := upstream.ExemplarQuerier(t.Context())
	require.NoError(t, err)
	found, err := q.Select(0, math.MaxInt64, []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", "m")})
	require.NoError(t, err)
	require.Len(t, found, 1)
	want := slices.Clone(found[0].Exemplars)
	for i := range want {
		want[i].HasTs = true
	}
	require.Equal(t, want, got)
	require.Less(t, len(got), 12)
}
