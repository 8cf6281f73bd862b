package recent_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// storing stores segments of one table.
type storing struct {
	t     *testing.T
	clock *clock
	s     *recent.Segments
	table *series.Table
	l     *recent.Labels
	n     int

	before *series.View // of the last segment
}

const begun = 1_700_000_000_000 // ms

func newStoring(t *testing.T, limit int64) *storing {
	t.Helper()
	c := &clock{t: time.UnixMilli(begun)}
	s := recent.New(1<<20, nil, c.now)
	s.KeepHeads(limit, true, nil)
	x := &storing{t: t, clock: c, s: s}
	x.rotate()
	return x
}

// rotate begins a new table.
func (x *storing) rotate() { x.table, x.l = series.NewTable(1), nil }

// put stores a segment, and returns its name.
func (x *storing) put(rows ...segment.Row) string {
	x.t.Helper()
	b, err := segmenttest.BatchIn(x.table, rows, nil)
	require.NoError(x.t, err)
	if x.l == nil {
		x.l = recent.NewLabels(b.View)
	}
	x.l.Extend(b.View)
	x.before = b.View
	x.n++
	name := fmt.Sprint("segment ", x.n)
	content := x.s.Of(b, x.l)
	require.NotNil(x.t, content)
	x.s.Stored("a", name, content)
	return name
}

func (x *storing) head() *recent.Head { return x.s.Head("a") }

// one is a row with a sample.
func one(i string, t int64, v float64) segment.Row {
	return segment.Row{Labels: labels.FromStrings("__name__", "m", "i", i), Floats: []segment.Float{{T: begun + t, V: v}}}
}

// ask returns the samples of m from mint (ms after begun) on, "-" if the head does not have them.
func (x *storing) ask(mint int64, ms ...*labels.Matcher) (out string) {
	x.t.Helper()
	r, ok := x.head().Read(begun+mint, ulid.ULID{})
	if !ok {
		return "-"
	}
	defer r.Close()
	if len(ms) == 0 {
		ms = []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", "m")}
	}
	found, ok := r.Select(ms, begun+mint, math.MaxInt64, 100, 1000, new(recent.Room))
	if !ok {
		return "no"
	}
	for _, s := range found {
		out += s.Labels.Get("i") + ":"
		for i, t := range s.T {
			out += fmt.Sprintf("%d=%v ", t-begun, s.V[i])
		}
	}
	return out
}

// has reports whether the head has the samples of an object from mint on.
func (x *storing) has(name string, maxT, mint int64) bool {
	x.t.Helper()
	r, ok := x.head().Read(begun+mint, ulid.ULID{})
	require.True(x.t, ok)
	defer r.Close()
	return r.Has(name, begun+maxT, begun+mint)
}

// TestHeadBegins: many reads of recent samples begin a head, or a call.
func TestHeadBegins(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.put(one("a", 1, 1))
	require.Equal(t, "-", x.ask(0))
	x.head().Begin()
	require.Equal(t, "", x.ask(0), "the head does not know what was stored before")
	require.False(t, x.has("segment 1", 1, 0))
	require.True(t, x.has("segment 1", 1, 2), "it ends before")
	x.put(one("a", 2, 2), one("b", 3, 3))
	require.Equal(t, "a:2=2 b:3=3 ", x.ask(0))
	require.True(t, x.has("segment 2", 3, 0))

	y := newStoring(t, 1<<20)
	for range 99 {
		require.Equal(t, "-", y.ask(0))
		require.Equal(t, "-", y.ask(-recent.Retention.Milliseconds()), "such reads do not count")
	}
	y.put(one("a", 2, 2))
	y.clock.t = y.clock.t.Add(2 * time.Minute)
	for range 100 {
		require.Equal(t, "-", y.ask(0), "too few in a minute")
	}
	y.put(one("a", 3, 2))
	require.Equal(t, "a:3=2 ", y.ask(0))
	require.Nil(t, (*recent.Segments)(nil).Head("a"))
	_, ok := (*recent.Segments)(nil).Head("a").Read(0, ulid.ULID{})
	require.False(t, ok)
}

// TestHeadSelects compares what matchers find with upstream's matching, while series are added.
func TestHeadSelects(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	var ms [][]*labels.Matcher
	m := func(typ labels.MatchType, name, value string) *labels.Matcher {
		return labels.MustNewMatcher(typ, name, value)
	}
	for _, typ := range []labels.MatchType{labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp} {
		for _, v := range []string{"", "1", "2", "1|3", ".*", ".+", "none"} {
			ms = append(ms, []*labels.Matcher{m(typ, "i", v)}, []*labels.Matcher{m(labels.MatchEqual, "__name__", "m"), m(typ, "i", v)},
				[]*labels.Matcher{m(typ, "j", v), m(labels.MatchEqual, "i", "2")}, []*labels.Matcher{m(typ, "absent", v), m(labels.MatchEqual, "i", "2")},
				[]*labels.Matcher{m(typ, "__name__", v), m(labels.MatchNotEqual, "i", "")})
		}
	}
	all := map[string]labels.Labels{}
	for n := range int64(6) {
		var rows []segment.Row
		for i := range int64(8) {
			ls := labels.FromStrings("__name__", "m", "i", fmt.Sprint(i%4), "j", fmt.Sprint(n*i%5))
			if i == 5 {
				ls = labels.FromStrings("i", fmt.Sprint(n))
			}
			all[ls.String()] = ls
			rows = append(rows, segment.Row{Labels: ls, Floats: []segment.Float{{T: begun + 1000*n + i, V: 1}}})
		}
		x.put(distinct(rows)...)
		for _, set := range ms {
			want := map[string]bool{}
			for text, ls := range all {
				matches := true
				for _, m := range set {
					matches = matches && m.Matches(ls.Get(m.Name))
				}
				if matches {
					want[text] = true
				}
			}
			r, ok := x.head().Read(begun, ulid.ULID{})
			require.True(t, ok)
			found, ok := r.Select(set, begun, math.MaxInt64, 100, 1000, new(recent.Room))
			require.True(t, ok)
			r.Close()
			got := map[string]bool{}
			for i, s := range found {
				got[s.Labels.String()] = true
				require.True(t, i == 0 || labels.Compare(found[i-1].Labels, s.Labels) < 0)
			}
			require.Equal(t, want, got, set)
		}
	}
}

// distinct returns the last row of each label set.
func distinct(rows []segment.Row) (out []segment.Row) {
	seen := map[string]bool{}
	for i := len(rows) - 1; i >= 0; i-- {
		if text := rows[i].Labels.String(); !seen[text] {
			seen[text] = true
			out = append(out, rows[i])
		}
	}
	return out
}

// TestHeadBeginsAnew: after each segment that it cannot hold beside what it has.
func TestHeadBeginsAnew(t *testing.T) {
	for name, cut := range map[string]func(x *storing){
		"equal time":   func(x *storing) { x.put(one("a", 10, 5)) },
		"earlier time": func(x *storing) { x.put(one("b", 10, 5), one("a", 9, 5)) },
		"third table": func(x *storing) {
			x.rotate()
			x.put(one("b", 20, 5))
			x.rotate()
			x.put(one("b", 21, 5))
		},
		"start timestamp": func(x *storing) { r := one("c", 20, 5); r.Floats[0].ST = begun; x.put(r) },
		"unknown":         func(x *storing) { x.s.Stored("a", "unknown", nil) },
		"deletions":       func(x *storing) { x.head().Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			x := newStoring(t, 1<<20)
			x.head().Begin()
			first := x.put(one("a", 10, 1))
			require.True(t, x.has(first, 10, 0))
			cut(x)
			require.False(t, x.has(first, 10, 0))
			require.False(t, x.has("segment 2", 10, 0), "what it cannot hold is not known either")
			require.Equal(t, "", x.ask(0))
			x.put(one("a", 30, 2))
			require.Equal(t, "a:30=2 ", x.ask(0))
		})
	}
}

// TestHeadKnowsRepeats: samples that are stored once more change nothing, whatever comes with them.
func TestHeadKnowsRepeats(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	nan := math.Float64frombits(upstream.StaleNaN)
	first := x.put(one("a", 10, 1), one("b", 11, nan))
	x.put(one("a", 20, 2), one("b", 21, 3))
	want := x.ask(0)
	again := x.put(one("a", 10, 1), one("b", 11, nan))
	require.Equal(t, want, x.ask(0))
	x.put(one("a", 20, 2), one("c", 5, 4))
	mixed := one("b", 11, nan)
	mixed.Floats = append(mixed.Floats, segment.Float{T: begun + 21, V: 3}, segment.Float{T: begun + 30, V: 5})
	last := x.put(mixed)
	require.Equal(t, "a:10=1 20=2 b:11=NaN 21=3 30=5 c:5=4 ", x.ask(0))
	for _, name := range []string{first, again, last} {
		require.True(t, x.has(name, 30, 0))
	}
	x.rotate()
	x.put(one("c", 5, 4), one("a", 20, 2), one("d", 6, 1))
	require.Equal(t, "a:10=1 20=2 b:11=NaN 21=3 30=5 c:5=4 d:6=1 ", x.ask(0), "of another table")
	x.put(one("a", 15, 2))
	require.Equal(t, "", x.ask(0), "it did not have this one")
}

// TestHeadMovesOn: a series keeps its samples when its writer begins a new table, and so does one
// that is not in the new table.
func TestHeadMovesOn(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	mixed := one("c", 10, 1)
	mixed.Hists = []segment.Hist{{T: begun + 11, H: tsdbutil.GenerateTestHistogram(1)}}
	first := x.put(one("a", 10, 1), one("b", 11, 2), mixed)
	b := labels.MustNewMatcher(labels.MatchRegexp, "i", "a|b|d")
	require.Equal(t, "a:10=1 b:11=2 ", x.ask(0, b))
	x.rotate()
	x.put(one("d", 20, 3), one("b", 21, 4))
	require.Equal(t, "a:10=1 b:11=2 21=4 d:20=3 ", x.ask(0, b))
	require.True(t, x.has(first, 11, 0))
	x.put(one("a", 30, 5), one("c", 30, 5))
	require.Equal(t, "a:10=1 30=5 b:11=2 21=4 d:20=3 ", x.ask(0, b))
	require.Equal(t, "no", x.ask(0), "c had histograms")
	x.rotate()
	x.put(one("b", 40, 6))
	require.Equal(t, "a:10=1 30=5 b:11=2 21=4 40=6 d:20=3 ", x.ask(0, b), "nothing was left in the first table")
	x.put(one("b", 40, 7))
	require.Equal(t, "", x.ask(0, b), "it has the last time of the series")

	x.put(one("a", 50, 1), one("b", 50, 1))
	x.rotate()
	x.put(one("b", 60, 2))
	for range 3 { // somebody must read
		x.clock.t = x.clock.t.Add(recent.Retention / 2)
		x.ask(x.clock.t.UnixMilli() - begun)
	}
	now := x.clock.t.UnixMilli() - begun
	x.put(one("b", now, 3))
	x.rotate()
	x.put(one("b", now+1, 4))
	require.Equal(t, fmt.Sprintf("b:%d=3 %d=4 ", now, now+1), x.ask(now-1000), "what was left is too old")

	future := now + time.Hour.Milliseconds()
	x.put(one("a", future, 5))
	x.rotate()
	for range 4 {
		x.clock.t = x.clock.t.Add(recent.Retention / 2)
		now = x.clock.t.UnixMilli() - begun
		x.ask(now)
		x.put(one("b", now, 6))
	}
	require.Equal(t, fmt.Sprintf("a:%d=5 b:%d=6 ", future, now), x.ask(now), "its table is old, and it is not")
}

// TestHeadAfterADeletion: a tombstone that the head has not seen makes it begin anew.
func TestHeadAfterADeletion(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	x.put(one("a", 10, 1))
	_, ok := x.head().Read(begun, ulid.ULID{1})
	require.False(t, ok)
	r, ok := x.head().Read(begun, ulid.ULID{1})
	require.True(t, ok)
	require.False(t, r.Has("segment 1", begun+10, begun))
	r.Close()
}

// TestHeadHasBlocks: blocks that this process merged have what their sources have.
func TestHeadHasBlocks(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	a, b := x.put(one("a", 10, 1)), x.put(one("a", 20, 1))
	require.False(t, x.has("block", 20, 0))
	x.head().Merged("block", []recent.Source{{Name: a, MaxT: math.MaxInt64}, {Name: b, MaxT: math.MaxInt64}})
	require.True(t, x.has("block", 20, 0))
	x.head().Merged("larger", []recent.Source{{Name: "block", MaxT: math.MaxInt64}, {Name: "other", MaxT: begun + 5}})
	require.False(t, x.has("larger", 20, 5))
	require.True(t, x.has("larger", 20, 6), "the other object ends before")
}

// TestHeadOfHistograms: series that have native histograms are not for a head.
func TestHeadOfHistograms(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	mixed := one("b", 10, 1)
	mixed.Hists = []segment.Hist{{T: begun + 11, H: tsdbutil.GenerateTestHistogram(1)}}
	x.put(one("a", 10, 1), mixed)
	x.put(one("b", 20, 1))
	require.Equal(t, "no", x.ask(0))
	require.Equal(t, "a:10=1 ", x.ask(0, labels.MustNewMatcher(labels.MatchEqual, "i", "a")))
}

// TestHeadForgets: samples that are too old, a head that nobody reads, and all beyond the limit.
func TestHeadForgets(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	x.put(one("a", 10, 1))
	x.clock.t = x.clock.t.Add(time.Minute)
	require.Equal(t, "a:10=1 ", x.ask(10))
	x.clock.t = x.clock.t.Add(9 * time.Minute)
	x.put(one("b", 600_000, 1))
	require.Equal(t, "a:10=1 b:600000=1 ", x.ask(10))
	x.clock.t = time.UnixMilli(begun + 10).Add(recent.Retention)
	x.put(one("b", 700_000, 1))
	require.Equal(t, "-", x.ask(10))
	require.Equal(t, "b:600000=1 700000=1 ", x.ask(11))
	x.clock.t = x.clock.t.Add(11 * time.Minute)
	x.put(one("b", 1_400_000, 1))
	require.Equal(t, "-", x.ask(1_400_000), "nobody read")

	reg := prometheus.NewRegistry()
	s := recent.New(1<<20, nil, x.clock.now)
	s.KeepHeads(8<<10, true, reg)
	y := &storing{t: t, clock: x.clock, s: s}
	y.rotate()
	y.head().Begin()
	require.Equal(t, "", y.ask(1_400_000))
	y.put(one("a", 10, 1))
	for range 200 {
		require.Equal(t, "-", y.ask(1_400_000))
	}
	reached := func(want int) {
		t.Helper()
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
# HELP promlake_head_limit_reached 1 if the samples of the last minutes took more than --query.head-bytes within the last hour, so that those of a tenant are not kept.
# TYPE promlake_head_limit_reached gauge
promlake_head_limit_reached %d
`, want)), "promlake_head_limit_reached"))
	}
	reached(1)
	x.clock.t = x.clock.t.Add(time.Hour)
	now := x.clock.t.UnixMilli() - begun
	for range 200 {
		y.ask(now)
	}
	reached(0)
	require.Equal(t, "", y.ask(now), "after an hour it begins again")
	y.put(one("a", now, 1))
	require.Equal(t, "-", y.ask(now))
	reached(1)
}

// TestHeadTakesWhatIsTooOld: a sample that is too old need not be later than those of its series
// that are forgotten.
func TestHeadTakesWhatIsTooOld(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	x.put(one("a", 10, 1))
	for range 2 { // somebody must read
		x.clock.t = x.clock.t.Add(recent.Retention/2 + time.Minute)
		x.ask(x.clock.t.UnixMilli() - begun)
	}
	now := x.clock.t.UnixMilli() - begun
	name := x.put(one("b", now, 2))
	old := x.put(one("a", 5, 1), one("b", now+1, 3))
	x.put(one("a", now, 4))
	require.Equal(t, fmt.Sprintf("a:%d=4 b:%[1]d=2 %d=3 ", now, now+1), x.ask(now))
	for _, name := range []string{name, old} {
		require.True(t, x.has(name, now+1, now))
	}
}
