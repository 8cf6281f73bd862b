package query_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/tests/support/laketest"
)

const second = int64(1000)

// counted has the same events as a cumulative counter c and as points of delta temporality d, both
// as numbers and as native histograms (ch, dh). The sender begins three hours before now and
// collects every 15 s. Some collections fail, so that the next point has their events, and the
// sender is away a few times, for up to five minutes.
func counted(rng *rand.Rand, name string) (rows []segment.Row, starts []int64) {
	c, d := segment.Row{Labels: laketest.Metric("c", "s", name)}, segment.Row{Labels: laketest.Metric("d", "s", name, "__temporality__", "delta")}
	ch, dh := segment.Row{Labels: laketest.Metric("ch", "s", name)}, segment.Row{Labels: laketest.Metric("dh", "s", name, "__temporality__", "delta")}
	now := laketest.Now().UnixMilli()
	begin := now - 180*minute + rng.Int64N(15*second)
	start, last, total := begin, begin, 0.0
	var hist *histogram.FloatHistogram
	starts = append(starts, start)
	for t := begin + 15*second; t < now; t += 15 * second {
		switch rng.IntN(60) {
		case 0: // the sender starts again
			t += rng.Int64N(300 * second)
			start, last, total, hist = t-15*second+1+rng.Int64N(10*second), 0, 0, nil
			last = start
			starts = append(starts, start)
		case 1, 2:
			continue
		}
		n := rng.Int64N(20) * rng.Int64N(3)
		if last == start {
			n += 5
		}
		total += float64(n)
		c.Floats = append(c.Floats, segment.Float{ST: start, T: t, V: total})
		d.Floats = append(d.Floats, segment.Float{ST: last, T: t, V: float64(n)})

		h := tsdbutil.GenerateTestHistogram(n)
		h.CounterResetHint, h.Sum = histogram.GaugeType, float64(3*n) // whole numbers, whose sums are exact
		dh.Hists = append(dh.Hists, segment.Hist{ST: last, T: t, H: h})
		f := h.ToFloat(nil)
		f.CounterResetHint = histogram.UnknownCounterReset
		if hist != nil {
			f, _, _, _ = hist.Copy().Add(f)
		}
		hist = f
		ch.Hists = append(ch.Hists, segment.Hist{ST: start, T: t, FH: f.Copy()})
		last = t
	}
	return []segment.Row{c, d, ch, dh}, starts
}

// counters are queries of which %s is a counter (h: of histograms).
var counters = []string{
	`increase(%s[2m])`, `increase(%s[5m])`, `rate(%s[17m] offset 3m)`, `irate(%s[2m])`, `resets(%s[1h])`, `sum(rate(%s[5m]))`,
	`sum(increase(%s[30s]))`, `topk(3, increase(%s[1h]))`, `max_over_time(increase(%s[5m])[20m:1m])`, `sum_over_time(rate(%s[1m])[10m:7s])`,
}

// TestDeltas: points of delta temporality and the cumulative counter of the same events have equal
// rates, bit for bit, if start timestamps are used for both; also where the sender started again,
// failed or was away, and in whatever order and objects the samples are stored.
func TestDeltas(t *testing.T) {
	var rows []segment.Row
	for i := range 6 {
		of, _ := counted(rand.New(rand.NewPCG(1, uint64(i))), fmt.Sprint(i))
		rows = append(rows, of...)
	}
	histograms := []string{`resets(%s[1h])`}
	for _, text := range counters[:4] {
		histograms = append(histograms, "histogram_count("+text+")", "histogram_sum("+text+")")
	}
	for _, layout := range laketest.Layouts {
		for _, push := range []query.Settings{laketest.PushAll, laketest.PushNone} {
			t.Run(fmt.Sprint(layout.Name, " ", push.MinPushedSamples), func(t *testing.T) {
				push.UseStartTimestamps = true
				l := laketest.New(t, laketest.NewDir(t), push)
				layout.Write(l, tenant.Default, rows)
				for of, texts := range map[[2]string][]string{{"c", "d"}: counters, {"ch", "dh"}: histograms} {
					for _, text := range texts {
						a := laketest.Query{Text: fmt.Sprintf(text, of[0]), Start: laketest.Now().Add(-181 * time.Minute), End: laketest.Now(), Step: 13 * time.Second}
						want := ratesOf(t, l, a)
						a.Text = fmt.Sprintf(text, of[1])
						require.Equal(t, want, ratesOf(t, l, a), a.Text)
						require.NotEmpty(t, want, text)
						a.End, a.Step = a.Start.Add(90*time.Minute), 0
						got := ratesOf(t, l, a)
						a.Text = fmt.Sprintf(text, of[0])
						require.Equal(t, ratesOf(t, l, a), got, "instant %s", a.Text)
					}
				}
			})
		}
	}
}

// TestDeltasByDefault: without start timestamps of cumulative counters, the rates are equal too,
// except where a counter starts within the window: then the events of its first point count.
func TestDeltasByDefault(t *testing.T) {
	rows, starts := counted(rand.New(rand.NewPCG(3, 3)), "x")
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	laketest.WriteMixture(l, tenant.Default, rows)
	a := laketest.Query{Text: `increase(c[5m])`, Start: laketest.Now().Add(-180 * time.Minute), End: laketest.Now(), Step: 7 * time.Second}
	want := ratesOf(t, l, a)
	a.Text = `increase(d[5m])`
	got := ratesOf(t, l, a)
	compared := 0
	for _, x := range got["x"] {
		if slices.ContainsFunc(starts, func(s int64) bool { return x.T-5*minute-15*second <= s && s <= x.T }) {
			continue
		}
		i := slices.IndexFunc(want["x"], func(p promql.FPoint) bool { return p.T == x.T })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, want["x"][i], x)
		compared++
	}
	require.Greater(t, compared, 300)

	// All events count, those of the first points too.
	var sum float64
	for _, f := range rows[1].Floats {
		sum += f.V
	}
	whole := laketest.Query{Text: `increase(d[200m])`, End: time.UnixMilli(rows[1].Floats[len(rows[1].Floats)-1].T)}
	require.Equal(t, sum, ratesOf(t, l, whole)["x"][0].F)

	// Whatever is no counter's function sees the points, and so do steps of subqueries that it makes.
	whole.Text = `sum_over_time(d[200m])`
	require.Equal(t, sum, ratesOf(t, l, whole)["x"][0].F)
	whole.Text = `max_over_time(d[200m])`
	require.Less(t, ratesOf(t, l, whole)["x"][0].F, 60.0)
	whole.Text = `rate(d[100m:15s])`
	stepped := ratesOf(t, l, whole)["x"][0].F
	whole.Text = `rate(d[100m])`
	require.InEpsilon(t, ratesOf(t, l, whole)["x"][0].F, stepped, 0.03)

	e, err := l.Explain(t.Context(), request.Question{Text: `rate(d[5m])`, Start: laketest.Now(), End: laketest.Now()})
	require.NoError(t, err)
	require.Equal(t, "there are series of delta temporality", e.Selectors[0].Refused)
}

// TestDeltasAreExtrapolatedAsCounters: rate does not extrapolate to times at which a counter would be
// negative. So it matters what a counter had counted before the window, which no point in the window
// tells: much, or next to nothing.
func TestDeltasAreExtrapolatedAsCounters(t *testing.T) {
	now := laketest.Now().UnixMilli()
	for name, n := range map[string]func(age int64) float64{ // events of a point, by the age (ms) of its counter
		"idle for an hour": func(age int64) float64 {
			return float64(laketest.Pick(age < hour, 50, laketest.Pick(age < 2*hour, 0, 7)))
		},
		"began slowly": func(age int64) float64 {
			return float64(laketest.Pick(age < 2*hour-minute, 0, laketest.Pick(age < 2*hour, 1, 100)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin := now - 2*hour - 2*minute
			if name == "began slowly" {
				begin = now - 4*minute
			}
			c, d := segment.Row{Labels: laketest.Metric("c", "s", "1")}, segment.Row{Labels: laketest.Metric("d", "s", "1", "__temporality__", "delta")}
			total := 0.0
			for at := begin + 15*second; at < now; at += 15 * second {
				v := n(at - begin + laketest.Pick(name == "began slowly", 2*hour-2*minute, int64(0)))
				total += v
				c.Floats = append(c.Floats, segment.Float{ST: begin, T: at, V: total})
				d.Floats = append(d.Floats, segment.Float{ST: at - 15*second, T: at, V: v})
			}
			l := laketest.New(t, laketest.NewDir(t), query.Settings{UseStartTimestamps: true})
			l.Write(tenant.Default, []segment.Row{c, d})
			for ago := range 30 {
				a := laketest.Query{Text: `rate(c[2m])`, End: laketest.Now().Add(-time.Duration(4*ago) * time.Second)}
				want := ratesOf(t, l, a)
				a.Text = `rate(d[2m])`
				require.Equal(t, want, ratesOf(t, l, a), a)
			}
		})
	}
}

// TestSparseDeltas: an event long after the last one counts, in a window that has no other point.
func TestSparseDeltas(t *testing.T) {
	now := laketest.Now().UnixMilli()
	row := segment.Row{Labels: laketest.Metric("errors_total", "__temporality__", "delta")}
	for _, ago := range []int64{10 * 60 * minute, 100 * minute, minute} {
		row.Floats = append(row.Floats, segment.Float{ST: now - ago - 15*second, T: now - ago, V: 3})
	}
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.Write(tenant.Default, []segment.Row{row})
	for text, want := range map[string]float64{
		`increase(errors_total[5m])`: 3, `increase(errors_total[3h])`: 6, `rate(errors_total[5m])`: 0.01, `errors_total`: 3,
	} {
		got := l.Exec(t.Context(), laketest.Query{Text: text, End: laketest.Now()})
		require.NoError(t, got.Err)
		v, err := got.Vector()
		require.NoError(t, err)
		require.Len(t, v, 1, text)
		require.InEpsilon(t, want, v[0].F, 0.02, text)
	}
}

// TestTotalsAreCounted: totals take memory beside the points that they are made of, so both count
// for the limit of a query's samples.
func TestTotalsAreCounted(t *testing.T) {
	now := laketest.Now().UnixMilli()
	c, d := segment.Row{Labels: laketest.Metric("c")}, segment.Row{Labels: laketest.Metric("d", "__temporality__", "delta")}
	h := segment.Row{Labels: laketest.Metric("h", "__temporality__", "delta")}
	for i := range int64(100) {
		at := now - (100-i)*15*second
		c.Floats = append(c.Floats, segment.Float{T: at, V: float64(i)})
		d.Floats = append(d.Floats, segment.Float{ST: at - 15*second, T: at, V: 1})
		h.Hists = append(h.Hists, segment.Hist{ST: at - 15*second, T: at, H: &histogram.Histogram{
			CounterResetHint: histogram.GaugeType, Schema: 8, Count: 1, Sum: 1,
			PositiveSpans: []histogram.Span{{Offset: int32(2 * i), Length: 1}}, PositiveBuckets: []int64{1},
		}})
	}
	l := laketest.New(t, laketest.NewDir(t), query.Settings{MaxSamples: 1500, MinPushedSamples: math.MaxInt64})
	l.Write(tenant.Default, []segment.Row{c, d, h})
	err := func(text string) error {
		return l.Exec(t.Context(), laketest.Query{Text: text, End: laketest.Now()}).Err
	}
	require.NoError(t, err(`rate(d[1h])`))
	require.NoError(t, err(`histogram_count(sum_over_time(h[1h]))`))
	require.ErrorContains(t, err(`rate(h[1h])`), "samples", "the last total has a hundred buckets")

	l = laketest.New(t, l.Store, query.Settings{MaxSamples: 150, MinPushedSamples: math.MaxInt64})
	require.NoError(t, err(`rate(c[1h])`))
	require.NoError(t, err(`sum_over_time(d[1h])`))
	require.ErrorContains(t, err(`rate(d[1h])`), "samples")
}

// ratesOf returns the values of a query's series by their label s.
func ratesOf(t *testing.T, l *laketest.Lake, a laketest.Query) map[string][]promql.FPoint {
	t.Helper()
	r := l.Exec(t.Context(), a)
	require.NoError(t, r.Err, a.Text)
	out := map[string][]promql.FPoint{}
	switch v := r.Value.(type) {
	case promql.Matrix:
		for _, s := range v {
			out[s.Metric.Get("s")] = s.Floats
		}
	case promql.Vector:
		for _, s := range v {
			out[s.Metric.Get("s")] = []promql.FPoint{{T: s.T, F: s.F}}
		}
	}
	return out
}
