package divide_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/replica"
	"github.com/promlake/promlake/tests/support/schematest"
)

// TestSlices: each step is in one slice, slices have two steps at least and are about equally long.
func TestSlices(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		g := plan.Grid{Start: rng.Int64N(1e12), Step: 1 + rng.Int64N(10_000_000), N: 1 + rng.IntN(300)}
		workers := rng.IntN(6)
		x := divide.Extent{Bytes: rng.Int64N(1 << 40), From: 1 + rng.Int64N(1<<30), Window: 7_200_000, Windows: rng.Int64N(4) - 1}
		out := divide.Slices(g, workers, 3, x)
		next := g.Start
		for _, s := range out {
			require.Equal(t, next, s.From)
			require.Zero(t, (s.Upto-s.From)%g.Step)
			if len(out) > 1 {
				require.Greater(t, s.Upto, s.From)
				if x.Windows > 0 && s.Upto < g.End() {
					require.Less(t, (s.Upto-1)/x.Window*x.Window+x.Window-s.Upto, g.Step, "slices end where windows do")
				}
			}
			next = s.Upto + g.Step
		}
		require.Equal(t, g.End()+g.Step, next)
		require.LessOrEqual(t, len(out), max(1, 3*workers))
	}
	day, minute := 24*time.Hour.Milliseconds(), time.Minute.Milliseconds()
	start := 20_000*day + 3*60*minute
	x := divide.Extent{Bytes: 1 << 40, From: 1 << 20, Window: day, Windows: 1}
	g := plan.Grid{Start: start, Step: 7 * minute, N: int(6*day/(7*minute)) + 1}
	out := divide.Slices(g, 2, 3, x)
	require.Len(t, out, 6)
	for _, s := range out[:5] {
		require.Less(t, (day-s.Upto%day)%day, 7*minute)
	}
	x.Windows = 3
	require.Len(t, divide.Slices(g, 2, 3, x), 2)
	x.Windows = 4
	require.Len(t, divide.Slices(g, 2, 3, x), 1)
	require.Len(t, divide.Slices(plan.Grid{Step: minute, N: 1000}, 8, 3, divide.Extent{Bytes: 10 << 20, From: 8 << 20}), 8, "an eighth of the size from which queries are divided, at least")
}

func TestRefused(t *testing.T) {
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true})
	for _, tc := range []struct{ query, why string }{
		{`sum by (a) (rate(x[5m]))`, ""},
		{`histogram_quantile(0.9, sum by (le) (rate(x_bucket[5m])))`, ""},
		{`sum(x) / sum(y @ end())`, ""},
		{`max_over_time(sum(x)[1h:1m])`, ""},
		{`topk(5, rate(x[range()]) * 60)`, ""},
		{`sum({a="b"})`, ""},
		{`count(sum by (a) (x))`, ""},
		{`-sum(x)`, ""},
		{`x @ 100 + 1`, "the same value at each step"},
		{`vector(1)`, "the same value at each step"},
		{`max_over_time(x[1h:1m]) + x @ start()`, "a subquery and the modifier @"},
		{`topk(5, sum by (a) (x))`, "topk depends on the order of series"},
		{`sum(x + y)`, "sum depends on the order of series"},
		{`sum(abs(x))`, "sum depends on the order of series"},
		{`quantile(scalar(x), x)`, "the parameter of quantile is not a number"},
		{`rate({a="b"}[5m])`, "drops metric names"},
		{`-(x or y)`, "drops metric names"},
		{`max_over_time((x or y)[5m:])`, "drops metric names"},
		{`label_replace(x, "a", "b", "c", "d")`, "label_replace()"},
		{`info(x)`, "info()"},
		{`rate(x[5m] anchored)`, "anchored"},
	} {
		expr, err := p.ParseExpr(tc.query)
		require.NoError(t, err, tc.query)
		if why := divide.Refused(expr); tc.why == "" {
			require.Empty(t, why, tc.query)
		} else {
			require.Contains(t, why, tc.why, tc.query)
		}
	}
}

// piece is one with everything.
func piece(t *testing.T) *divide.Piece {
	t.Helper()
	id := ulid.MustParse("01HF7YAT00TEST000000000000")
	w := key.Window(7_200_000)
	s := catalog.Snapshot{Tenant: "a", Segments: []catalog.SegmentRef{{Segment: key.Segment{Tenant: "a", Window: w, ID: id}, Size: 10, ETag: `"x"`, Rank: id, DeletesThrough: id}}}
	s.Blocks = []catalog.Block{{Level: key.L2h, Window: w, ID: id, Rank: id, DeletesThrough: id, MinT: 7_200_000, MaxT: 7_300_000, Series: 1, Samples: 2, Bytes: 3, Slice: catalog.Slice{Index: 1, Of: 2}}}
	s.Tombstones = []catalog.Tombstone{{ID: id, Matchers: []catalog.Matcher{{Type: "=~", Name: "a", Value: "b"}}, MinT: 1, MaxT: 2, QueuedThrough: 3, Before: id}}
	return &divide.Piece{
		Version: divide.Version, Tenant: "a", Query: "m", Start: 7_200_000, End: 7_500_000, Step: 60_000, From: 7_260_000, Upto: 7_320_000, Lookback: 300_000, PerStep: true,
		Options:  divide.OptionsOf(true, replica.Rule{Replica: "r", Cluster: "c", Failover: 30_000}),
		Snapshot: divide.SnapshotOf(s, true), Timeout: 1000, MaxBytes: 1 << 30, Estimated: 100, Requests: 3,
	}
}

// TestWindows: slices lie in whole windows that fit, have two steps at least, and do not depend on
// where the grid begins and ends.
func TestWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	same := 0
	for range 2000 {
		unit := int64(2 + rng.IntN(1000))
		g := plan.Grid{Start: rng.Int64N(40_000) - 20_000, Step: 1 + rng.Int64N(unit/2), N: 2 + rng.IntN(3000)}
		bad := rng.Int64N(40)
		fits := func(s divide.Slice) bool { return (s.From/unit)%40 != bad }
		all := map[divide.Slice]bool{}
		last := g.Start - 1
		for _, s := range divide.Windows(g, unit, 16*unit, fits) {
			require.Greater(t, s.From, last)
			require.Greater(t, s.Upto, s.From)
			require.LessOrEqual(t, s.Upto, g.End())
			require.Zero(t, (s.From-g.Start)%g.Step)
			require.Zero(t, (s.Upto-g.Start)%g.Step)
			require.Less(t, s.Upto-s.From, 16*unit)
			all[s], last = true, s.Upto
		}
		g.Start, g.N = g.Start+g.Step, g.N+1
		for _, s := range divide.Windows(g, unit, 16*unit, fits) {
			if all[s] {
				same++
			}
		}
	}
	require.Greater(t, same, 10_000)
	day := 24 * time.Hour.Milliseconds()
	g := plan.Grid{Start: 100*day + 1, Step: day / 24, N: 24*90 + 1} // from day 100 to 190
	lengths := []int64{}
	for _, s := range divide.Windows(g, day, 16*day, func(divide.Slice) bool { return true }) {
		lengths = append(lengths, (s.Upto-s.From)/day+1)
	}
	require.Equal(t, []int64{4, 8, 16, 16, 16, 16, 8, 4, 2}, lengths)
}

// TestPieceGolden: the JSON of a piece is that of its schema, and what is read of it is what was
// written.
func TestPieceGolden(t *testing.T) {
	p := piece(t)
	b, err := p.Encode()
	require.NoError(t, err)
	golden, err := os.ReadFile("testdata/piece-v1.json")
	require.NoError(t, err)
	require.JSONEq(t, string(golden), string(b))
	got, err := divide.Parse(golden)
	require.NoError(t, err)
	require.Equal(t, p, got)
	require.Equal(t, divide.SnapshotOf(got.Snapshot.Of("a"), true), p.Snapshot)
	least := &divide.Piece{Version: 1, Tenant: "a", Query: "m", Step: 1, Lookback: 1, Timeout: 1, MaxBytes: 1}
	small, err := least.Encode()
	require.NoError(t, err)
	wrong := schematest.Validate(t, "../../../schemas/piece.schema.json", b, small, bytes.Replace(b, []byte(`"version":1`), []byte(`"version":2`), 1))
	require.Empty(t, wrong[0])
	require.Empty(t, wrong[1])
	require.NotEmpty(t, wrong[2])
	least.Query = string(bytes.Repeat([]byte("x"), divide.MaxBytes))
	_, err = least.Encode()
	require.ErrorIs(t, err, divide.ErrWhole)
	require.ErrorContains(t, err, "at most 8388608")
}

// answer is one with everything.
func answer() *divide.Answer {
	a := &divide.Answer{
		Series: promql.Matrix{
			{Metric: labels.EmptyLabels(), Floats: []promql.FPoint{{T: 7_260_000, F: 1}, {T: 7_320_000, F: 0.1}}},
			{Metric: labels.FromStrings("a", "b", "c", "日"), Floats: []promql.FPoint{{T: 7_320_000, F: 2}}, Histograms: []promql.HPoint{{T: 7_260_000, H: tsdbutil.GenerateTestCustomBucketsFloatHistogram(3)}}},
			{Metric: labels.FromStrings("a", "d"), Histograms: []promql.HPoint{{T: 7_260_000, H: &histogram.FloatHistogram{Sum: math.Copysign(0, -1)}}}},
		},
		Stats: divide.Stats{Samples: 1, SamplesRead: 2, Peak: 3, SamplesPerStep: []int64{4, 5}, SamplesReadStep: []int64{6, 7}},
	}
	a.Stats.Storage.Bytes.Read = 8
	a.Notes.Add(annotations.NewPossibleNonCounterInfo("m", posrange.PositionRange{Start: 0, End: 1}))
	a.Notes.Add(annotations.NewMixedFloatsHistogramsAggWarning(posrange.PositionRange{Start: 0, End: 1}))
	return a
}

func encoded(t *testing.T, a *divide.Answer, p *divide.Piece) []byte {
	t.Helper()
	write, err := a.Encode(p)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, write(&b))
	return b.Bytes()
}

// TestAnswers: what is read of an answer is what was written, none of it if any byte at its end is
// missing, and nothing before its memory is charged.
func TestAnswers(t *testing.T) {
	p, a := piece(t), answer()
	b := encoded(t, a, p)
	charged := int64(0)
	read := func(b []byte) (*divide.Answer, error) {
		return divide.Read(bytes.NewReader(b), p, func(n int64) error { charged += n; return nil })
	}
	got, err := read(b)
	require.NoError(t, err)
	require.Greater(t, charged, int64(500))
	require.Equal(t, a.Series.String(), got.Series.String())
	require.True(t, math.Signbit(got.Series[2].Histograms[0].H.Sum))
	require.Equal(t, a.Stats, got.Stats)
	w, i := a.Notes.AsStrings("m", 0, 0)
	gw, gi := got.Notes.AsStrings("m", 0, 0)
	require.Equal(t, w, gw)
	require.Equal(t, i, gi)
	require.Len(t, i, 1)
	for n := range b {
		_, err := read(b[:n])
		require.ErrorContains(t, err, "it ended early, or is none", n)
		spoilt := bytes.Clone(b)
		spoilt[n] ^= 0x41
		_, err = read(spoilt)
		require.ErrorContains(t, err, "it ended early, or is none", n)
	}
	short := errors.New("no memory")
	_, err = divide.Read(bytes.NewReader(b), p, func(int64) error { return short })
	require.ErrorIs(t, err, short)
	_, err = divide.Read(io.LimitReader(bytes.NewReader(b), 3), p, func(int64) error { return nil })
	require.Error(t, err)

	other := *p
	other.From, other.Upto = 7_380_000, 7_440_000
	_, err = divide.Read(bytes.NewReader(b), &other, func(int64) error { return nil })
	require.ErrorContains(t, err, "it is for the steps from 1970-01-01T02:01:00Z to 1970-01-01T02:02:00Z")
	late := answer()
	late.Series[0].Floats[1].T++
	_, err = read(encoded(t, late, p))
	require.ErrorContains(t, err, "has a value at 7320001, which is no further step")
}

// TestJoin: series are those of all slices, in the order of their labels.
func TestJoin(t *testing.T) {
	at := func(name string, ts ...int64) (s promql.Series) {
		s.Metric = labels.FromStrings("a", name)
		for _, t := range ts {
			s.Floats = append(s.Floats, promql.FPoint{T: t, F: float64(t)})
		}
		return s
	}
	got, err := divide.Join([]*divide.Answer{{Series: promql.Matrix{at("c", 1, 2)}}, {}, {Series: promql.Matrix{at("a", 3), at("c", 4)}}}, "m")
	require.NoError(t, err)
	require.Equal(t, promql.Matrix{at("a", 3), at("c", 1, 2, 4)}, got.Series)

	noted := func(err error) *divide.Answer {
		return &divide.Answer{Notes: annotations.Annotations{err.Error(): err}}
	}
	pos := func(at posrange.Pos) error {
		return annotations.NewPossibleNonCounterInfo("m", posrange.PositionRange{Start: at, End: at + 1})
	}
	got, err = divide.Join([]*divide.Answer{noted(pos(0)), noted(pos(0))}, "m + m")
	require.NoError(t, err)
	require.Len(t, got.Notes, 1)
	_, err = divide.Join([]*divide.Answer{noted(pos(0)), noted(pos(4))}, "m + m")
	require.ErrorIs(t, err, divide.ErrWhole)
	_, err = divide.Join([]*divide.Answer{noted(annotations.NewHistogramQuantileForcedMonotonicityInfo("m", posrange.PositionRange{}, 1, 2, 3, 4))}, "m")
	require.ErrorIs(t, err, divide.ErrWhole)
}

// TestAddressesOfWorkers: mistakes are found at the start, and names are looked up.
func TestAddressesOfWorkers(t *testing.T) {
	for _, bad := range []string{"", "host", "http://host:1", "dnssrv+host:1", "host:", ":80", "host:http", "host:0", "host:70000", "a/b:80", "dns+", "lambda:f"} {
		_, err := divide.NewWorkers([]string{"good:80", bad}, 2, nil, nil)
		require.ErrorContains(t, err, "query.workers: want HOST:PORT or dns+HOST:PORT, or lambda:FUNCTION alone", bad)
	}
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "")
	for _, bad := range []string{"lambda:", "lambda:a/b", "lambda:self"} {
		_, err := divide.NewWorkers([]string{bad}, 2, nil, nil)
		require.ErrorContains(t, err, "query.workers: want the name or the ARN of a function of AWS Lambda, or lambda:self in a function", bad)
	}
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "promlake-dev-query")
	for version, want := range map[string]string{"": "", "$LATEST": "", "7": ":7"} {
		t.Setenv("AWS_LAMBDA_FUNCTION_VERSION", version)
		w, err := divide.NewWorkers([]string{"lambda:self"}, 2, nil, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"lambda:promlake-dev-query" + want, "lambda:promlake-dev-query" + want}, w.Resolve(t.Context()))
	}
	w, err := divide.NewWorkers([]string{"b:80", "dns+localhost:81", "b:80", "[::1]:82"}, 2, nil, nil)
	require.NoError(t, err)
	all := w.Resolve(t.Context())
	require.Contains(t, all, "127.0.0.1:81")
	require.Contains(t, all, "[::1]:82")
	require.Subset(t, []string{"127.0.0.1:81", "[::1]:81", "[::1]:82", "b:80"}, all)
	none, err := divide.NewWorkers(nil, 2, nil, nil)
	require.NoError(t, err)
	require.Nil(t, none)
	require.Empty(t, none.Resolve(t.Context()))
}
