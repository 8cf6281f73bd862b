package query_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
)

// rollupRows are series over three days before testNow, with every possible content of a bucket: no
// samples, only stale markers, values that are not numbers, zeros of both signs, and samples on the
// ends of buckets and days. Every second series is too sparse for rows in rollups of 5 minutes.
func rollupRows() []segment.Row {
	rng := rand.New(rand.NewPCG(11, 5))
	odd := []float64{math.NaN(), math.Float64frombits(0x7ff8000000000abc), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.Float64frombits(value.StaleNaN)}
	now := testNow().UnixMilli()
	var rows []segment.Row
	for i := range 6 {
		r := segment.Row{Labels: metric("m", "i", fmt.Sprint(i), "job", string(rune('a'+i%2)))}
		v := 0.0
		t := now/(24*60*minute)*(24*60*minute) - 48*60*minute - 90*minute // some before the midnight
		scrape, chances := int64(20_000), 400
		if i%2 == 1 {
			scrape, chances = 6000, 4000
		}
		for t <= now {
			switch n := rng.IntN(chances); {
			case n == 0:
				t += rng.Int64N(130 * minute)
			case n < 4: // a while of something odd
				x := odd[rng.IntN(len(odd))]
				for until := t + rng.Int64N(100*minute); t < until; t += scrape {
					r.Floats = append(r.Floats, segment.Float{T: t, V: x})
				}
			case n < 20:
				r.Floats = append(r.Floats, segment.Float{T: t, V: odd[rng.IntN(len(odd))]})
			default:
				v += float64(rng.IntN(2001)-1000) / 8
				r.Floats = append(r.Floats, segment.Float{T: t, V: v})
			}
			if t += scrape; i%3 == 0 {
				t += rng.Int64N(500)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// rollupStates are what may happen to the series of the blocks.
var rollupStates = []struct {
	name  string
	apply func(l *lake)
}{
	{"plain", func(*lake) {}},
	{"deletions", func(l *lake) {
		now := testNow().UnixMilli()
		l.delete(tenant.Default, []*labels.Matcher{equal("job", "b")}, now-40*60*minute, now-38*60*minute)
		l.delete(tenant.Default, []*labels.Matcher{equal("job", "a")}, now-3*minute, now)
	}},
	{"later segments", func(l *lake) {
		now := testNow().UnixMilli()
		late := segment.Row{Labels: metric("m", "i", "0", "job", "a")}
		for i, f := range rollupRows()[0].Floats { // other values for some samples that the blocks have too
			if f.T > now-30*60*minute && f.T < now-26*60*minute && i%3 > 0 {
				late.Floats = append(late.Floats, segment.Float{T: f.T, V: 1e9 * float64(i%3*2-3)}, segment.Float{T: f.T + 1, V: f.V})
			}
		}
		fresh := segment.Row{Labels: metric("m", "i", "new", "job", "b"), Floats: []segment.Float{{T: now - minute, V: 5}, {T: now - 25*60*minute, V: 6}}}
		l.write(tenant.Default, []segment.Row{late, fresh})
	}},
}

// rollupWays ask at times that buckets end at, and at others.
func rollupWays(text string) []asked {
	day := testNow().Truncate(24 * time.Hour)
	return []asked{
		{text: text, end: day.Add(20 * time.Hour)},
		{text: text, end: testNow().Add(-17 * time.Minute)},
		{text: text, start: day.Add(-30 * time.Hour), end: day.Add(21 * time.Hour), step: time.Hour},
		{text: text, start: day.Add(-20 * time.Hour), end: day.Add(2 * time.Hour), step: 5 * time.Minute},
		{text: text, start: day.Add(-20*time.Hour + 1234*time.Millisecond), end: day.Add(2 * time.Hour), step: 17 * time.Minute},
		{text: text, start: day.Add(10 * time.Hour), end: day.Add(12 * time.Hour), step: 77 * time.Second},
	}
}

// rolledQueries are the selectors that rollups may answer, for each function.
var (
	rolledFuncs  = []string{"max_over_time", "min_over_time", "last_over_time", "first_over_time", "ts_of_last_over_time", "ts_of_first_over_time", "present_over_time", "count_over_time"}
	rolledRanges = []string{"m[5m]", "m[1h]", "m[2h] offset 1h", "m[90m] offset -5m", "m[30h]", "m[2d] offset 7m", "m[1d] @ end()", "m[7m]", "m[100m] @ 1699900000"}
	rolledOthers = []string{
		"m", "m offset 5m", "m @ end()", "m offset 1m", "timestamp(m)", "timestamp(m offset 10m)", "sum by (job) (m)", "count(m) by (job)", `absent_over_time(m{i="3"}[1h])`,
		`absent_over_time(m{i="new"}[3h])`, "max(max_over_time(m[2d]))", "max_over_time(max_over_time(m[5m])[2h:5m])", "topk(2, min_over_time(m[1h]))",
	}
	unrolled = []string{
		"sum_over_time(m[1h])", "avg_over_time(m[1d])", "rate(m[1h])", "increase(m[1h])", "delta(m[1h])", "changes(m[1h])", "resets(m[1h])", "stddev_over_time(m[1h])",
		"quantile_over_time(0.5, m[1h])", "ts_of_max_over_time(m[1h])", "ts_of_min_over_time(m[1h])", "irate(m[1h])", "deriv(m[1h])",
	}
)

// lakesOfRollups returns three lakes with the same samples: two without rollups, one of which uses
// the engine alone and one SQL, and one with rollups.
func lakesOfRollups(t *testing.T, rows []segment.Row, remote bool, apply func(*lake)) (engine, plain, rolled *lake) {
	store, other := newDirStore(t), objstore.Store(newDirStore(t))
	if remote {
		other = &remoteStore{Store: other}
	}
	engine, plain, rolled = newLake(t, store, pushNone), newLake(t, store, pushAll), newLake(t, other, pushAll)
	for _, l := range []*lake{plain, rolled} {
		l.writeBlocks(tenant.Default, blockShape{level: key.L24h, groupRows: 7000, rollups: l == rolled}, rows)
		apply(l)
	}
	return engine, plain, rolled
}

// TestRollupsAnswer: answers from rollups equal those from samples, bit for bit.
func TestRollupsAnswer(t *testing.T) {
	rows := rollupRows()
	for _, state := range rollupStates {
		t.Run(state.name, func(t *testing.T) {
			engine, plain, rolled := lakesOfRollups(t, rows, state.name == "deletions", state.apply)
			queries := rolledOthers
			for _, fn := range rolledFuncs {
				for _, sel := range rolledRanges {
					queries = append(queries, fn+"("+sel+")")
				}
			}
			for n, text := range append(queries, unrolled...) {
				if state.name != "plain" && n%3 > 0 {
					continue
				}
				for _, a := range rollupWays(text) {
					want := plain.exec(t.Context(), a)
					identical(t, want, rolled.exec(t.Context(), a), a)
					if n%9 == 0 {
						same(t, engine.exec(t.Context(), a), want, a)
					}
				}
			}
			require.Zero(t, plain.counted("promlake_query_pushed_total", "rollups"))
			require.Greater(t, rolled.counted("promlake_query_pushed_total", "rollups"), float64(len(queries)))
			require.Zero(t, rolled.counted("promlake_query_kept_queries_total"))
		})
	}
}

// identical compares two results bit for bit.
func identical(t *testing.T, want, got *promql.Result, about any) {
	t.Helper()
	compare(t, want, got, about, func(v, x float64) bool { return math.Float64bits(v) == math.Float64bits(x) })
}

// TestRollupsAreRead: rollups are read where they are worth it and answer exactly, and nowhere
// else.
func TestRollupsAreRead(t *testing.T) {
	rows := rollupRows()
	day := testNow().Truncate(24 * time.Hour)
	hourly := func(text string) asked {
		return asked{text, day.Add(-30 * time.Hour), day.Add(21 * time.Hour), time.Hour}
	}
	odd := func(text string) asked {
		return asked{text, day.Add(-20*time.Hour + 1234*time.Millisecond), day.Add(2 * time.Hour), 17 * time.Minute}
	}
	at := func(text string) asked { return asked{text: text, end: testNow().Add(-17 * time.Minute)} }
	_, plain, rolled := lakesOfRollups(t, rows, false, func(*lake) {})
	_, _, deleted := lakesOfRollups(t, rows, false, rollupStates[1].apply)
	_, _, late := lakesOfRollups(t, rows, false, rollupStates[2].apply)
	for _, tc := range []struct {
		name    string
		lake    *lake
		asked   asked
		rollups float64
	}{
		{"windows of whole hours", rolled, hourly("max_over_time(m[2h])"), 3},
		{"windows of whole five minutes", rolled, hourly("count_over_time(m[5m] offset 5m)"), 3},
		{"instants", rolled, hourly("sum(m)"), 3},
		{"an instant's window", rolled, at("max_over_time(m[2d])"), 3},
		{"what long windows share", rolled, odd("min_over_time(m[40h])"), 2},
		{"windows that begin anywhere", rolled, odd("max_over_time(m[2h])"), 0},
		{"a function of all samples", rolled, hourly("sum_over_time(m[2h])"), 0},
		{"a rate", rolled, hourly("rate(m[2h])"), 0},
		{"blocks without rollups", plain, hourly("max_over_time(m[2h])"), 0},
		{"a deleted series", deleted, hourly(`max_over_time(m{i="1"}[2h])`), 2},
		{"its neighbour", deleted, hourly(`max_over_time(m{i="2"}[2h])`), 3},
		{"a series with later samples", late, hourly(`max_over_time(m{i="0"}[2h])`), 2},
		{"its neighbours", late, hourly(`max_over_time(m{i!="0"}[2h])`), 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.lake.counted("promlake_query_pushed_total", "rollups")
			require.NoError(t, tc.lake.exec(t.Context(), tc.asked).Err)
			require.Equal(t, tc.rollups, tc.lake.counted("promlake_query_pushed_total", "rollups")-before)
		})
	}
}

// TestRollupsSpareSamples: where a block's rollups are read, only the row groups at the edges of
// windows are read, and explain shows that.
func TestRollupsSpareSamples(t *testing.T) {
	_, plain, rolled := lakesOfRollups(t, rollupRows(), false, func(*lake) {})
	read := func(l *lake) (samples float64, groups, rollups int64) {
		before, a := l.counted("promlake_query_samples_read_total"), asked{text: "max_over_time(m[2d])", end: testNow().Add(-17 * time.Minute)}
		require.NoError(t, l.exec(t.Context(), a).Err)
		ex, err := l.Explain(t.Context(), query.Question{Text: a.text, End: a.end})
		require.NoError(t, err)
		for _, f := range ex.Pushed[0].Statements[0].Files {
			require.GreaterOrEqual(t, f.Bytes.Considered, f.Bytes.Read, f.Key)
			if groups += f.RowGroups.Read; strings.HasSuffix(f.Key, "/rollup-1h.parquet") {
				rollups++
				require.Positive(t, f.Bytes.Read)
			}
		}
		return l.counted("promlake_query_samples_read_total") - before, groups, rollups
	}
	all, allGroups, none := read(plain)
	some, someGroups, rollups := read(rolled)
	require.Zero(t, none)
	require.Equal(t, int64(3), rollups)
	require.Less(t, 10*some, all)
	require.Positive(t, someGroups)
	require.Less(t, someGroups, allGroups)
	require.Equal(t, float64(someGroups), rolled.counted("promlake_query_row_groups_total", "read"))
}

// TestRollupsGone: a rollup that is missing or broken is an error of the storage, not an answer.
func TestRollupsGone(t *testing.T) {
	for _, broken := range []bool{false, true} {
		l := newLake(t, newDirStore(t), query.Settings{MinPushedSamples: -1, MaxStaleness: time.Hour})
		blocks := l.writeBlocks(tenant.Default, blockShape{level: key.L24h, rollups: true}, rollupRows())
		gone := 0
		for _, b := range blocks {
			name := b.Key(tenant.Default).File("rollup-1h.parquet")
			err := l.store.Delete(t.Context(), name)
			if errors.Is(err, os.ErrNotExist) { // the day with few samples
				continue
			}
			require.NoError(t, err)
			if gone++; broken {
				put(t, l.store, name, []byte("PAR1 this is none PAR1"))
			}
		}
		require.Equal(t, 3, gone)
		res := l.exec(t.Context(), asked{text: "max_over_time(m[2d])", end: testNow()})
		var storage promql.ErrStorage
		require.ErrorAs(t, res.Err, &storage)
		require.ErrorContains(t, res.Err, "rollup-1h.parquet")
	}
}
