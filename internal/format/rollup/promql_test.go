package rollup_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/rollup"
)

// float is a sample as an element of upstream's lists of samples.
type float struct {
	t int64
	v float64
}

func (f float) T() int64                      { return f.t }
func (f float) ST() int64                     { return 0 }
func (f float) F() float64                    { return f.v }
func (f float) H() *histogram.Histogram       { return nil }
func (f float) FH() *histogram.FloatHistogram { return nil }
func (f float) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (f float) Copy() chunks.Sample           { return f }

// oneSeries is a set of one series.
type oneSeries struct {
	storage.Series
	taken bool
}

func (s *oneSeries) Next() bool {
	first := !s.taken
	s.taken = true
	return first
}
func (s *oneSeries) At() storage.Series                { return s.Series }
func (s *oneSeries) Err() error                        { return nil }
func (s *oneSeries) Warnings() annotations.Annotations { return nil }

// upstream evaluates PromQL over one series m in memory.
type upstream struct {
	t      *testing.T
	engine *promql.Engine
	data   storage.Queryable
}

func newUpstream(t *testing.T, s samples) *upstream {
	list := make([]chunks.Sample, len(s.ts))
	for i := range list {
		list[i] = float{t: s.ts[i], v: s.v[i]}
	}
	series := storage.NewListSeries(labels.FromStrings(model.MetricNameLabel, "m"), list)
	return &upstream{
		t: t,
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 1e9, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{EnableExperimentalFunctions: true}),
		}),
		data: &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
			SelectMockFunction: func(bool, *storage.SelectHints, ...*labels.Matcher) storage.SeriesSet {
				return &oneSeries{Series: series}
			},
		}},
	}
}

// eval returns the one value of an instant query at ts (ms), if there is one.
func (u *upstream) eval(query string, ts int64) (float64, bool) {
	q, err := u.engine.NewInstantQuery(context.Background(), u.data, nil, query, time.UnixMilli(ts))
	require.NoError(u.t, err)
	defer q.Close()
	res := q.Exec(context.Background())
	v, err := res.Vector()
	require.NoError(u.t, err, query)
	if len(v) == 0 {
		return 0, false
	}
	require.Len(u.t, v, 1)
	return v[0].F, true
}

// extrapolate is what extrapolatedRate makes of an increase over (start, end] (ms).
func extrapolate(w *rollup.Window, gain float64, start, end int64, counter, perSecond bool) float64 {
	firstT, first := w.First()
	lastT, _ := w.Last()
	toStart, toEnd := float64(firstT-start)/1000, float64(end-lastT)/1000
	sampled := float64(lastT-firstT) / 1000
	between := sampled / float64(w.Count()-1)
	if toStart >= between*1.1 {
		toStart = between / 2
	}
	if counter {
		toZero := toStart
		if gain > 0 && first >= 0 {
			toZero = sampled * (first / gain)
		}
		toStart = min(toStart, toZero)
	}
	if toEnd >= between*1.1 {
		toEnd = between / 2
	}
	factor := 1.0
	if sampled != 0 {
		factor = (sampled + toStart + toEnd) / sampled
	}
	if perSecond {
		factor /= float64(end-start) / 1000
	}
	return gain * factor
}

// answer is a function's value from a rollup.
type answer struct {
	query  string // with the range as %s
	value  float64
	exact  bool
	atOnce bool // needs two samples
}

func answers(w *rollup.Window, start, end int64) []answer {
	firstT, first := w.First()
	lastT, last := w.Last()
	sum, sumExact := w.Sum()
	avg, avgExact := w.Avg()
	gain, gainExact := w.Increase()
	return []answer{
		{"count_over_time(m[%s])", float64(w.Count()), true, false},
		{"present_over_time(m[%s])", 1, true, false},
		{"first_over_time(m[%s])", first, true, false},
		{"last_over_time(m[%s])", last, true, false},
		{"ts_of_first_over_time(m[%s])", float64(firstT) / 1000, true, false},
		{"ts_of_last_over_time(m[%s])", float64(lastT) / 1000, true, false},
		{"min_over_time(m[%s])", w.Min(), true, false},
		{"max_over_time(m[%s])", w.Max(), true, false},
		{"changes(m[%s])", float64(w.Changes()), true, false},
		{"resets(m[%s])", float64(w.Resets()), true, false},
		{"sum_over_time(m[%s])", sum, sumExact, false},
		{"avg_over_time(m[%s])", avg, avgExact, false},
		{"delta(m[%s])", extrapolate(w, w.Delta(), start, end, false, false), true, true},
		{"increase(m[%s])", extrapolate(w, gain, start, end, true, false), gainExact, true},
		{"rate(m[%s])", extrapolate(w, gain, start, end, true, true), gainExact, true},
	}
}

// TestWindowsAnswerAsUpstreamDoes asks upstream's engine about random windows of whole buckets and
// compares bit for bit the answers that are declared exact. At the end it has seen exact and
// inexact answers of every function that knows both.
func TestWindowsAnswerAsUpstreamDoes(t *testing.T) {
	exact, inexact := map[string]int{}, map[string]int{}
	for name, next := range values {
		rng := rand.New(rand.NewPCG(11, uint64(len(name))))
		for range 4 {
			s := randomSeries(rng, 1_772_496_000_000, 900, next)
			files := memFiles{}
			w, err := rollup.NewFullWriter(files)
			require.NoError(t, err)
			require.NoError(t, w.Append("m", 1, s.ts, s.v, nil))
			_, err = w.Close()
			require.NoError(t, err)
			u := newUpstream(t, s)
			for _, step := range rollup.Steps() {
				rows := files.read(t, step.Name)
				for range 8 {
					start := rows[rng.IntN(len(rows))].Bucket - int64(rng.IntN(2))*step.Millis
					end := start + (1+int64(rng.IntN(5)))*step.Millis
					win := windowOf(rows, start, end)
					compareAll(t, u, win, start, end, fmt.Sprintf("%s, %s", name, step.Name), exact, inexact)
				}
			}
		}
	}
	for _, f := range []string{"sum_over_time(m[%s])", "avg_over_time(m[%s])", "rate(m[%s])"} {
		require.Greater(t, exact[f], 50, f)
		require.Greater(t, inexact[f], 10, f)
	}
}

func windowOf(rows []rollup.Record, start, end int64) *rollup.Window {
	w := &rollup.Window{}
	for _, r := range rows {
		if r.Bucket >= start && r.Bucket < end {
			w.Add(r.Row)
		}
	}
	return w
}

func compareAll(t *testing.T, u *upstream, w *rollup.Window, start, end int64, what string, exact, inexact map[string]int) {
	t.Helper()
	span := fmt.Sprintf("%ds", (end-start)/1000)
	for _, a := range answers(w, start, end) {
		query := fmt.Sprintf(a.query, span)
		want, any := u.eval(query, end)
		if w.Count() == 0 || a.atOnce && w.Count() == 1 {
			require.False(t, any, "%s: %s", what, query)
			continue
		}
		require.True(t, any, "%s: %s", what, query)
		if !a.exact {
			inexact[a.query]++
			continue
		}
		exact[a.query]++
		if math.IsNaN(want) && math.IsNaN(a.value) && !selects(a.query) {
			continue
		}
		require.Equal(t, math.Float64bits(want), math.Float64bits(a.value), "%s: %s at %d: want %v, rollup says %v", what, query, end, want, a.value)
	}
	compareInstant(t, u, w, start, end, what)
}

// selects reports whether a function returns one of the samples, whose bits are then those of the
// sample, also if it is NaN.
func selects(query string) bool {
	return query[:4] == "min_" || query[:4] == "max_" || query[:4] == "firs" || query[:4] == "last"
}

// compareInstant compares an instant selector with a lookback of the window's length.
func compareInstant(t *testing.T, u *upstream, w *rollup.Window, start, end int64, what string) {
	if end-start != (5 * time.Minute).Milliseconds() {
		return
	}
	want, any := u.eval("m", end)
	lastT, last := w.Last()
	require.Equal(t, any, w.Count() > 0 && w.Stale() < lastT, "%s: m at %d", what, end)
	if any {
		require.Equal(t, math.Float64bits(want), math.Float64bits(last), "%s: m at %d", what, end)
	}
}

// TestInexactSumsAreClose bounds what Sum may be off by where it is not exact: the error of a
// compensated sum (Neumaier, 1974), which is one rounding of the sum and a vanishing share of the
// sum of magnitudes.
func TestInexactSumsAreClose(t *testing.T) {
	for _, name := range []string{"gauge of decimals", "counter of decimals", "any finite", "large whole"} {
		rng := rand.New(rand.NewPCG(5, uint64(len(name))))
		for range 30 {
			s := randomSeries(rng, 1_772_496_000_000, 2000, values[name])
			files := memFiles{}
			w, err := rollup.NewFullWriter(files)
			require.NoError(t, err)
			require.NoError(t, w.Append("m", 1, s.ts, s.v, nil))
			_, err = w.Close()
			require.NoError(t, err)
			got, _ := windowOf(files.read(t, "rollup-5m.parquet"), 0, math.MaxInt64).Sum()
			want, _ := exactSum(s.v).Float64()
			magnitude := 0.0
			for _, v := range s.v {
				magnitude += math.Abs(v)
			}
			require.LessOrEqual(t, math.Abs(got-want), 0x1p-52*math.Abs(want)+0x1p-80*magnitude, name)
		}
	}
}
