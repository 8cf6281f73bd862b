package statsd_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/statsd"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

const start = 1_700_000_000_000 // ms

// world is an aggregator with a clock that stands.
type world struct {
	t   testing.TB
	at  time.Time
	sum *statsd.Aggregator

	broken bool // the clock panics
}

func newWorld(t testing.TB, change func(*statsd.Settings)) *world {
	w := &world{t: t, at: time.UnixMilli(start)}
	s := statsd.Settings{Timers: statsd.Summary, MaxSeries: 100, MaxSetValues: 10, TTL: time.Hour, MaxStateBytes: 1 << 30}
	change(&s)
	w.sum = statsd.New(s, func() time.Time {
		if w.broken {
			panic("a defect")
		}
		return w.at
	})
	return w
}

func plain(t testing.TB) *world { return newWorld(t, func(*statsd.Settings) {}) }

// add adds lines and returns the reasons of what was left out, events and parts of them.
func (w *world) add(lines ...string) (dropped []string) {
	note := func(reason string, err error) { dropped = append(dropped, reason+": "+err.Error()) }
	w.sum.Add([]byte(strings.Join(lines, "\n")+"\n"), note, note)
	return dropped
}

// flush moves the clock on by ten seconds and returns the samples, with seconds since the start.
func (w *world) flush() (out []string) {
	w.t.Helper()
	w.at = w.at.Add(10 * time.Second)
	f := w.sum.Flush()
	l := remotewrite.DefaultLimits()
	var last []string
	for range 2 { // the same again
		room := max(f.Size(), 1<<20)
		b, err := f.Batch(remotewrite.NewGeneration(1), remotewrite.Rules{Limits: &l, TimeRange: l.TimeRange(w.at), MaxWindows: 100}, remotewrite.NewRoom(100, room, 4*room, func(int64) error { return nil }))
		require.NoError(w.t, err)
		require.NoError(w.t, b.Err)
		require.Equal(w.t, f.Len(), len(b.Floats)+len(b.Hists))
		out = nil
		view := b.Generation.Table.View()
		for _, x := range b.Floats {
			text := fmt.Sprint(x.V)
			if value.IsStaleNaN(x.V) {
				text = "end"
			}
			out = append(out, fmt.Sprintf("%s %s @%d", remotewritetest.Labels(&view, x.Ref), text, (x.T-start)/1000))
		}
		for _, x := range b.Hists {
			text := x.H.String()
			if value.IsStaleNaN(x.H.Sum) {
				text = "end"
			}
			out = append(out, fmt.Sprintf("%s %s @%d", remotewritetest.Labels(&view, x.Ref), text, (x.T-start)/1000))
		}
		slices.Sort(out)
		if last != nil {
			require.Equal(w.t, last, out)
		}
		last = out
	}
	return out
}

func TestSums(t *testing.T) {
	w := plain(t)
	require.Empty(t, w.flush())
	require.Empty(t, w.add("c:1|c", "c:2|c|@0.5\r", "g:5|g", "g:+2|g", "g:-3|g", "s:a|s", "s:b|s", "s:a|s", "", "  m:4|m  "))
	require.Equal(t, []string{
		`{__name__="c"} 0 @10`, `{__name__="c"} 5 @20`, `{__name__="g"} 4 @20`, `{__name__="m"} 0 @10`, `{__name__="m"} 4 @20`, `{__name__="s"} 2 @20`,
	}, w.flush())
	require.Empty(t, w.add("c:1|c", "s:a|s", "g:-1|g"))
	require.Equal(t, []string{`{__name__="c"} 6 @30`, `{__name__="g"} 3 @30`, `{__name__="m"} 4 @30`, `{__name__="s"} 1 @30`}, w.flush())
	require.Equal(t, []string{`{__name__="c"} 6 @40`, `{__name__="g"} 3 @40`, `{__name__="m"} 4 @40`, `{__name__="s"} 0 @40`}, w.flush())
}

func TestSummaries(t *testing.T) {
	w := plain(t)
	require.Empty(t, w.add("t:100|ms", "t:300|ms|@0.5", "h:7|h|#quantile:x", "h:9|d|#quantile:x"))
	require.Equal(t, []string{
		`{__name__="h", quantile="0.5"} 7 @10`, `{__name__="h", quantile="0.9"} 9 @10`, `{__name__="h", quantile="0.99"} 9 @10`,
		`{__name__="h_count", quantile="x"} 2 @10`, `{__name__="h_sum", quantile="x"} 16 @10`,
		`{__name__="t", quantile="0.5"} 0.3 @10`, `{__name__="t", quantile="0.9"} 0.3 @10`, `{__name__="t", quantile="0.99"} 0.3 @10`,
		`{__name__="t_count"} 0 @0`, `{__name__="t_count"} 3 @10`,
		`{__name__="t_sum"} 0 @0`, `{__name__="t_sum"} 0.7 @10`,
	}, rounded(w.flush()))
}

// rounded hides what floats add.
func rounded(in []string) []string {
	for i := range in {
		in[i] = strings.ReplaceAll(in[i], "0.7000000000000001", "0.7")
	}
	return in
}

func TestNativeHistograms(t *testing.T) {
	w := newWorld(t, func(s *statsd.Settings) { s.Timers, s.TTL = statsd.Native, 15*time.Second })
	require.Empty(t, w.add("t:1000|ms|#x:1", "t:1000|ms|#x:1"))
	require.Equal(t, []string{`{__name__="t", x="1"} {count:0, sum:0} @0`, `{__name__="t", x="1"} {count:2, sum:2, (0.9170040432046711,1]:2} @10`}, w.flush())
	require.Equal(t, []string{`{__name__="t", x="1"} end @20`}, w.flush())
	require.Empty(t, w.flush())
	require.Empty(t, w.add("t:1000|ms|#x:1"))
	require.Equal(t, []string{`{__name__="t", x="1"} {count:0, sum:0} @30`, `{__name__="t", x="1"} {count:1, sum:1, (0.9170040432046711,1]:1} @40`}, w.flush())
}

// TestTags: one label set in all styles, and names as statsd_exporter makes them.
func TestTags(t *testing.T) {
	for _, line := range []string{
		"a.b-c:1|g|#x:1,y:2", "a.b-c,x=1,y=2:1|g", "a.b-c#x=1,y=2:1|g", "a.b[x=1,y=2]-c:1|g", "a.b-c[x=1,y=2]:1|g", "a.b-c,y=2:1|g|#x:1",
		"a.b-c,y=3:1|g|#x:1,y:2", "a.b-c:1|g|@1|#y:2,,x:1|c:abc|T1700000000",
	} {
		w := plain(t)
		require.Empty(t, w.add(line), line)
		require.Equal(t, []string{`{__name__="a_b_c", x="1", y="2"} 1 @10`}, w.flush(), line)
	}
	w := plain(t)
	require.Empty(t, w.add("9lives.é:1|g", "u[url=http://x]:1|g", "m:1|g|#url:http://y", "v:1|c|c:container", "w:1|c:2|c", "x:1:2:3|c|#a:b", "y:1:2|c", "z:1|c|e:it-false"))
	require.Equal(t, []string{`{__name__="_9lives__"} 1 @10`, `{__name__="m", url="http://y"} 1 @10`, `{__name__="u", url="http://x"} 1 @10`,
		`{__name__="v"} 0 @0`, `{__name__="v"} 1 @10`, `{__name__="w"} 0 @0`, `{__name__="w"} 3 @10`, `{__name__="x", a="b"} 0 @0`, `{__name__="x", a="b"} 6 @10`,
		`{__name__="y"} 0 @0`, `{__name__="y"} 3 @10`, `{__name__="z"} 0 @0`, `{__name__="z"} 1 @10`}, w.flush())
}

func TestLeftOut(t *testing.T) {
	for line, want := range map[string]string{
		"a":                       `invalid_line: line "a": want name:value|type (invalid_line)`,
		":1|c":                    "want name:value|type",
		"a:1":                     "the type is none of",
		"a:1|x":                   "the type is none of",
		"a:|c":                    "the value is not a number",
		"a:x|c":                   "the value is not a number",
		"a:NaN|c":                 "the value is not a number",
		"a:inf|ms":                "the value is not a number",
		"a:-1|c":                  "a counter cannot go down",
		"a:1|ms|@0.0001":          "the sample rate of a timer is below 0.001",
		"a:1|c|x":                 "want name:value|type, with |@rate and |#tags at most",
		"#x=1:1|c":                "the metric has no name",
		"a\xff:1|c":               "not valid UTF-8",
		"_e{5,4}:title|text":      "event: events and service checks are not metrics",
		"_sc|name|0":              "event: ",
		strings.Repeat("x", 1000): `xxxx": want`,
	} {
		w := plain(t)
		got := w.add("before:1|g", line, "after:1|g")
		require.Len(t, got, 1, line)
		require.Contains(t, got[0], want)
		require.Less(t, len(got[0]), 300)
		require.Len(t, w.flush(), 2, line)
	}
}

// TestIgnoredParts: tags that are not a name and a value, and rates that are none, cost no event.
func TestIgnoredParts(t *testing.T) {
	tag, rate := statsd.ReasonTag, statsd.ReasonRate
	for _, tc := range []struct {
		line    string
		ignored []string // the reasons
		want    string   // the series and its value
	}{
		{"m:2|g|#production", []string{tag}, `{__name__="m"} 2`},
		{"m:2|g|#production,env:x,", []string{tag}, `{__name__="m", env="x"} 2`},
		{"m:2|g|#env:prod,#region:eu", nil, `{__name__="m", env="prod", region="eu"} 2`},
		{"m:2|g|##env:prod", nil, `{__name__="m", env="prod"} 2`},
		{"m:2|g|#", nil, `{__name__="m"} 2`},
		{"m:2|g|#:x,y:,__name__:z,#,a:b:c", []string{tag}, `{__name__="m", a="b:c"} 2`},
		{"m[a,b=c]:2|g", []string{tag}, `{__name__="m", b="c"} 2`},
		{"m,a,b=c:2|g", []string{tag}, `{__name__="m", b="c"} 2`},
		{"m#a,b=c:2|g|#d", []string{tag}, `{__name__="m", b="c"} 2`},
		{"m:2|c|@0", []string{rate}, `{__name__="m"} 2`},
		{"m:2|c|@-1|#a:b", []string{rate}, `{__name__="m", a="b"} 2`},
		{"m:2|c|#a:b|@NaN", []string{rate}, `{__name__="m", a="b"} 2`},
		{"m:2|c|@1.5|#a", []string{tag, rate}, `{__name__="m"} 2`},
		{"m:2|c|@often", []string{rate}, `{__name__="m"} 2`},
		{"m:2|c|@", []string{rate}, `{__name__="m"} 2`},
		{"m:2|c|@Inf:3|c|@0.5", []string{rate}, `{__name__="m"} 8`},
		{"m:1:1|c|@2|#a:b", []string{rate, rate}, `{__name__="m", a="b"} 2`},
	} {
		w := plain(t)
		for range 2 { // the series is known then
			got := slices.Clone(tc.ignored[:0])
			for _, x := range w.add(tc.line) {
				reason, _, _ := strings.Cut(x, ": ")
				got = append(got, reason)
			}
			require.Equal(t, tc.ignored, got, tc.line)
		}
		w = plain(t)
		w.add(tc.line)
		require.Contains(t, w.flush(), tc.want+" @10", tc.line)
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t, func(s *statsd.Settings) { s.MaxSeries, s.TTL = 7, 25*time.Second })
	require.Empty(t, w.add("a:1|g", "t:1|ms"))
	got := w.add("b:1|g", "c:1|c", "u:1|ms", "a:2|g", "a:1|c")
	require.Equal(t, []string{
		"max_series: there are 7 series, and the limit is 7 (statsd.max-series) (max_series)", "max_series: there are 7 series, and the limit is 7 (statsd.max-series) (max_series)",
		`conflicting_type: metric "a" is a gauge, and cannot be a counter too (conflicting_type)`,
	}, got)
	w.flush()
	w.flush()
	require.Empty(t, w.add("a:3|g"))
	require.Contains(t, w.flush(), `{__name__="t_count"} end @30`)
	require.Empty(t, w.add("u:1|ms", "t:1|g"), "there is room again, and the name is free")

	w = plain(t)
	for i := range 10 {
		require.Empty(t, w.add(fmt.Sprintf("s:%d|s", i)))
	}
	require.Equal(t, []string{"max_set_values: the sets have 10 values, which is the limit (statsd.max-set-values) (max_set_values)"}, w.add("other:x|s"))
	require.Empty(t, w.add("s:5|s"))
	require.Equal(t, []string{`{__name__="other"} 0 @10`, `{__name__="s"} 10 @10`}, w.flush())
	require.Empty(t, w.add("other:x|s"))
}

// TestStateBytes: names and tags of senders, timers and sets take bounded memory, which is charged to
// the process and given back.
func TestStateBytes(t *testing.T) {
	const limit = 1 << 20
	reg := prometheus.NewRegistry()
	budget := memory.New(4*limit, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, reg)
	held := func() float64 { return acquired(t, reg) }
	pad := strings.Repeat("x", 16_000)
	for kind, line := range map[string]string{"names": "n%d" + pad + ":1|c", "tags": "n:1|c|#a:%d" + pad, "timers": "t%d:1|ms", "sets": "s:%d|s", "texts": "n:1|c|#a:%d" + pad + ",a:1"} {
		w := newWorld(t, func(s *statsd.Settings) { s.MaxSeries, s.MaxSetValues, s.Memory = 1_000_000, 1_000_000, budget })
		refused := 0
		for i := range map[bool]int{false: 200, true: 25_000}[kind == "sets"] {
			for _, x := range w.add(fmt.Sprintf(line, i)) {
				require.Contains(t, x, "the limit is 1048576 (statsd.max-state-bytes, and a quarter of memory-limit at most)")
				refused++
			}
			if i%100 == 0 {
				require.LessOrEqual(t, held(), float64(limit), kind)
			}
		}
		require.Equal(t, kind == "texts", refused == 0, kind)
		require.Equal(t, kind != "texts", held() > float64(limit/10), kind)
		w.at = w.at.Add(2 * time.Hour)
		w.sum.Flush()
		require.Zero(t, held(), kind)
		require.Empty(t, w.add(fmt.Sprintf(line, 0)), kind)
		w.at = w.at.Add(2 * time.Hour)
		w.sum.Flush()
	}
	other := memory.New(limit, memory.Probe{Usage: func() int64 { return 2 * limit }, Now: time.Now}, nil)
	w := newWorld(t, func(s *statsd.Settings) { s.Memory = other })
	require.Contains(t, w.add("a:1|c")[0], "max_state_bytes: state: refused: the process is at its memory limit")
}

// TestManyTexts: a label set that is written in many ways takes no more memory for that.
func TestManyTexts(t *testing.T) {
	w := plain(t)
	for i := range 1000 {
		require.Empty(t, w.add("c:1|c|#x:1"+strings.Repeat(",", i)))
	}
	require.Equal(t, []string{`{__name__="c", x="1"} 0 @0`, `{__name__="c", x="1"} 1000 @10`}, w.flush())
}

func FuzzLines(f *testing.F) {
	for _, line := range []string{"c:1|c|@0.5|#a:b", "a[x=1]:+1|g:2|ms", "s,x=1:a|s", "t#a=b:1:2|h|#q:1", "_e{1,1}:a|b", "v:1|c|c:x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		w := plain(t)
		w.add(lines)
		first := w.flush()
		require.LessOrEqual(t, len(first), 200)
		w.add(lines)
		w.flush()
	})
}

// BenchmarkLines adds up a datagram of DogStatsD.
func BenchmarkLines(b *testing.B) {
	w := newWorld(b, func(s *statsd.Settings) { s.MaxSeries = 10_000 })
	var text strings.Builder
	const n = 1000
	for i := range n {
		fmt.Fprintf(&text, "http.requests:%d|%s|#path:/api/%d,code:200\n", i%7, []string{"c", "g"}[i%2], i/2)
	}
	lines := []byte(strings.ReplaceAll(text.String(), "|g|", "|c|"))
	drop := func(_ string, err error) { b.Fatal(err) }
	for b.Loop() {
		w.sum.Add(lines, drop, drop)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
}

// TestPanics: a flush that panics drops all series and gives back their memory; later events count.
func TestPanics(t *testing.T) {
	reg := prometheus.NewRegistry()
	budget := memory.New(1<<30, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, reg)
	w := newWorld(t, func(s *statsd.Settings) { s.Memory = budget })
	require.Empty(t, w.add("c:5|c", "s:a|s", "t:1|ms"))
	require.Positive(t, acquired(t, reg))
	w.broken = true
	require.Panics(t, func() { w.sum.Flush() })
	w.broken = false
	require.Zero(t, acquired(t, reg))
	require.Empty(t, w.add("c:1|c"))
	require.Equal(t, []string{`{__name__="c"} 0 @0`, `{__name__="c"} 1 @10`}, w.flush())
}

// acquired is what is charged to the budget of a registry, in bytes.
func acquired(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	all, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range all {
		if f.GetName() == "promlake_memory_acquired_bytes" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no metric")
	return 0
}
