package ruleeval_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/rules/ruleeval"
)

const (
	lookback = 5 * time.Minute
	origin   = int64(1_700_000_000_000) // ms; the first sample
)

var language = parser.NewParser(parser.Options{EnableExperimentalFunctions: true, ExperimentalDurationExpr: true})

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Hour, LookbackDelta: lookback, EnableAtModifier: true, EnableNegativeOffset: true, Parser: language,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
	})
}

// datum is a sample of the input.
type datum struct {
	ls labels.Labels
	t  int64
	v  float64
	h  *histogram.FloatHistogram
}

// randomData returns samples in the order of time: series that come, go and are marked stale, and
// histograms.
func randomData(r *rand.Rand, length time.Duration) (out []datum) {
	for _, name := range []string{"a", "b", "c_total", "h"} {
		for _, x := range []string{"1", "2", "3"} {
			ls := labels.FromStrings("__name__", name, "x", x, "job", "j"+x)
			on, v := true, 0.0
			for t := origin; t < origin+length.Milliseconds(); t += 15_000 + r.Int64N(3000) {
				if r.IntN(40) == 0 {
					on = !on
					if !on && r.IntN(2) == 0 {
						out = append(out, datum{ls: ls, t: t, v: math.Float64frombits(value.StaleNaN)})
						continue
					}
				}
				if !on {
					continue
				}
				d := datum{ls: ls, t: t, v: math.Round(r.NormFloat64()*100) / 10}
				switch name {
				case "c_total":
					v += float64(r.IntN(5))
					d.v = v
				case "h":
					d.h = tsdbutil.GenerateTestFloatHistogram(r.Int64N(5))
				}
				out = append(out, d)
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].t < out[j].t })
	return out
}

func appendData(t *testing.T, to storage.Appendable, data []datum) {
	t.Helper()
	app := to.Appender(t.Context())
	for _, d := range data {
		var err error
		if d.h != nil {
			_, err = app.AppendHistogram(0, d.ls, d.t, nil, d.h)
		} else {
			_, err = app.Append(0, d.ls, d.t, d.v)
		}
		require.NoError(t, err)
	}
	require.NoError(t, app.Commit())
}

// randomRules returns the text of a rule file whose rules read the input and each other.
func randomRules(r *rand.Rand) string {
	names := []string{"r0", "r1", "r2", "r3", "r4"}
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var expr func(depth int) string
	expr = func(depth int) string {
		metric := pick("a", "b", "c_total", "h", "{job=~'j[12]'}", `{__name__=~"r."}`, names[r.IntN(5)], names[r.IntN(5)], `r1{s="1"}`)
		if metric == `{__name__=~"r."}` || metric == "{job=~'j[12]'}" {
			if r.IntN(3) > 0 {
				metric = "a"
			}
		}
		switch k := r.IntN(16); {
		case k < 3 || depth == 0:
			return metric + pick("", "", "", " offset 1m", " offset -1m", " @ 1700000600", " @ start()", " @ end()")
		case k < 6:
			return pick("rate", "max_over_time", "count_over_time", "last_over_time", "sum_over_time") + "(" + metric + pick("[1m]", "[5m]", "[7m] offset 2m") + ")"
		case k < 9:
			return pick("sum", "count", "max", "topk") + pick(" by (x)", "", " without (job)") + "(" + expr(depth-1) + ")"
		case k < 11:
			return expr(depth-1) + pick(" + ", " * ", " > ", " and ", " or ", " unless ") + pick("", "on (x) ", "ignoring (job, s) ") + expr(depth-1)
		case k < 12:
			return "max_over_time(" + metric + "[4m:1m])"
		case k < 13:
			return "absent(" + metric + ")"
		case k < 14:
			return "timestamp(" + metric + ") - " + pick("time()", "3")
		case k < 15:
			return "label_replace(" + metric + `, "x", "9", "job", "j[12]")`
		}
		return "count(" + metric + ") > 2"
	}
	var b strings.Builder
	b.WriteString("groups:\n")
	for g := range 1 + r.IntN(3) {
		fmt.Fprintf(&b, "- name: g%d\n  interval: %s\n", g, pick("30s", "1m", "77s"))
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "  query_offset: %s\n", pick("1m", "45s"))
		}
		if r.IntN(4) == 0 {
			b.WriteString("  limit: 2\n")
		}
		b.WriteString("  rules:\n")
		for range 1 + r.IntN(4) {
			e := expr(2)
			e = strings.ReplaceAll(e, "topk(", "topk(2, ")
			e = strings.ReplaceAll(e, "topk by (x)(", "topk by (x)(1, ")
			e = strings.ReplaceAll(e, "topk without (job)(", "topk without (job)(1, ")
			if _, err := language.ParseExpr(e); err != nil {
				e = "a"
			}
			fmt.Fprintf(&b, "  - record: %s\n    expr: %q\n", names[r.IntN(5)], e)
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, "    labels: {s: %q}\n", pick("1", "2"))
			}
		}
	}
	return b.String()
}

// sampled are the samples of series, as text.
type sampled map[string][]string

func (s sampled) add(ls labels.Labels, t int64, v float64, h *histogram.FloatHistogram) {
	text := fmt.Sprintf("%d %016x", t, math.Float64bits(v))
	if h != nil {
		c := h.Copy()
		c.CounterResetHint = histogram.UnknownCounterReset
		text = fmt.Sprintf("%d %s %016x", t, c, math.Float64bits(c.Sum))
	}
	s[ls.String()] = append(s[ls.String()], text)
}

// live evaluates the rules as a server does: each evaluation sees what was stored until then.
func live(t *testing.T, path string, data []datum, start, end time.Time) sampled {
	t.Helper()
	db := teststorage.New(t)
	engine := newEngine()
	defer engine.Close()
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, db), Appendable: db, Context: t.Context(), Parser: language,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler),
	})
	groups, errs := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, path)
	require.Empty(t, errs)
	next := map[*rules.Group]time.Time{}
	for _, g := range groups {
		at := g.EvalTimestamp(start.UnixNano())
		if at.Before(start) {
			at = at.Add(g.Interval())
		}
		next[g] = at
	}
	for {
		var g *rules.Group
		for one, at := range next {
			if g == nil || at.Before(next[g]) {
				g = one
			}
		}
		at := next[g]
		if at.After(end) {
			break
		}
		n := sort.Search(len(data), func(i int) bool { return data[i].t > at.UnixMilli() })
		appendData(t, db, data[:n])
		data = data[n:]
		g.Eval(t.Context(), at)
		next[g] = at.Add(g.Interval())
	}
	out := sampled{}
	q, err := db.Querier(math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	defer q.Close()
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", "r."))
	for set.Next() {
		it := set.At().Iterator(nil)
		for k := it.Next(); k != chunkenc.ValNone; k = it.Next() {
			if k == chunkenc.ValFloat {
				at, v := it.At()
				out.add(set.At().Labels(), at, v, nil)
			} else {
				at, h := it.AtFloatHistogram(nil)
				out.add(set.At().Labels(), at, 0, h)
			}
		}
	}
	require.NoError(t, set.Err())
	return out
}

// past evaluates the rules in windows, each by itself.
func past(t *testing.T, path string, data []datum, start, end time.Time, window time.Duration) (sampled, *ruleeval.Evaluator) {
	t.Helper()
	db := teststorage.New(t)
	appendData(t, db, data)
	engine := newEngine()
	defer engine.Close()
	rs, err := ruleeval.Load(ruleeval.Files{Paths: []string{path}, Interval: time.Minute, Lookback: lookback, Parser: language})
	require.NoError(t, err)
	e, err := ruleeval.New(ruleeval.Options{
		Rules: rs, Targets: rs.Recording(), Producers: rs.Recording(), Data: db, Engine: engine, Fatal: func(error) bool { return false },
		Start: start, End: end, MemoryBytes: 1 << 30,
	})
	require.NoError(t, err)
	out := sampled{}
	whole, err := e.Whole(t.Context())
	require.NoError(t, err)
	for from := (start.UnixMilli() - 600_000) / window.Milliseconds() * window.Milliseconds(); from <= end.UnixMilli(); from += window.Milliseconds() {
		m, err := e.Window(t.Context(), whole, from, from+window.Milliseconds())
		require.NoError(t, err)
		for _, one := range []*ruleeval.Memory{m, whole} {
			if one == nil {
				continue
			}
			require.NoError(t, one.Each(from, from+window.Milliseconds(), func(ls labels.Labels, all []ruleeval.Sample) error {
				for _, s := range all {
					out.add(ls, s.T, s.V, s.H)
				}
				return nil
			}))
		}
	}
	return out, e
}

var cases = flag.Uint64("cases", 8, "random rule files that are compared with live evaluation")

// TestPastIsWhatLiveEvaluationWrites compares random rules over random data, bit for bit.
func TestPastIsWhatLiveEvaluationWrites(t *testing.T) {
	for seed := range *cases {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compare(t, seed) })
	}
}

func compare(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	data := randomData(r, 40*time.Minute)
	text := randomRules(r)
	t.Chdir(t.TempDir())
	path := "rules.yml" // it determines the times of evaluations
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	start := time.UnixMilli(origin + r.Int64N(600_000))
	end := start.Add(25 * time.Minute)
	want := live(t, path, data, start, end)
	got, _ := past(t, path, data, start, end, time.Duration(3+r.IntN(12))*time.Minute)
	for ls := range got {
		require.Equal(t, want[ls], got[ls], "%s\n%s", ls, text)
	}
	require.Len(t, got, len(want), "%s", text)
}
