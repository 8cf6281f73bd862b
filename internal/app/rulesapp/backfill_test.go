package rulesapp_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/app/rulesapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
)

// recorded are rules that read each other across groups, forwards and backwards, and themselves.
const recorded = `
groups:
- name: base
  interval: 5m
  rules:
  - {record: r:rate, expr: 'sum by (host) (rate(requests_total[10m]))'}
  - {record: r:share, expr: 'r:rate / on () group_left () sum(r:rate)', labels: {kind: share}}
  - {record: r:hist, expr: 'sum by (host) (latency)'}
  - {record: r:limited, expr: 'load > 3'}
  - {record: r:broken, expr: 'load * on (host) requests_total'}
- name: late
  interval: 7m
  query_offset: 3m
  rules:
  - {record: r:late, expr: 'avg_over_time(r:rate[30m])'}
  - {record: r:evaluations, expr: '(r:evaluations or vector(0)) + 1'}
- name: first
  interval: 10m
  limit: 2
  rules:
  - {record: r:day, expr: 'max_over_time(r:late[2h:10m]) or load'}
  - {alert: NotEvaluated, expr: vector(1)}
`

// histories returns series of 18 hours, which come and go.
func histories() (out []segment.Row) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, host := range []string{"a", "b", "c"} {
		for _, metric := range []string{"load", "requests_total", "latency"} {
			row := segment.Row{Labels: labels.FromStrings("__name__", metric, "host", host)}
			on, v := true, 0.0
			for at := origin.UnixMilli(); at < minutes(18*60).UnixMilli(); at += 60_000 + r.Int64N(5000) {
				if r.IntN(60) == 0 {
					if on = !on; !on && metric != "latency" {
						row.Floats = append(row.Floats, segment.Float{T: at, V: math.Float64frombits(value.StaleNaN)})
						continue
					}
				}
				switch {
				case !on:
				case metric == "latency":
					row.Hists = append(row.Hists, segment.Hist{T: at, FH: tsdbutil.GenerateTestFloatHistogram(r.Int64N(9))})
				case metric == "load":
					row.Floats = append(row.Floats, segment.Float{T: at, V: math.Round(r.Float64() * 6)})
				default:
					v += r.Float64() * 9
					row.Floats = append(row.Floats, segment.Float{T: at, V: v})
				}
			}
			out = append(out, row)
		}
	}
	return out
}

// putAll stores rows, as segments of their windows.
func putAll(t *testing.T, store objstore.Store, rows []segment.Row) {
	t.Helper()
	windows := map[key.Window][]segment.Row{}
	for _, r := range rows {
		parts := map[key.Window]*segment.Row{}
		part := func(at int64) *segment.Row {
			w := key.WindowOf(at)
			if parts[w] == nil {
				parts[w] = &segment.Row{Labels: r.Labels}
			}
			return parts[w]
		}
		for _, f := range r.Floats {
			p := part(f.T)
			p.Floats = append(p.Floats, f)
		}
		for _, h := range r.Hists {
			p := part(h.T)
			p.Hists = append(p.Hists, h)
		}
		for w, p := range parts {
			windows[w] = append(windows[w], *p)
		}
	}
	for w, all := range windows {
		sort.Slice(all, func(i, j int) bool { return labels.Compare(all[i].Labels, all[j].Labels) < 0 })
		require.NoError(t, compacttest.Put(t.Context(), store, name, w, ulid.Make(), all))
	}
}

// live returns what a server writes that evaluates the rules over the same samples, by labels and
// time.
func live(t *testing.T, rows []segment.Row, start, end time.Time) map[string]map[int64]compacttest.Sample {
	t.Helper()
	db := teststorage.New(t)
	p := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Hour, EnableAtModifier: true, EnableNegativeOffset: true, Parser: p})
	defer engine.Close()
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, db), Appendable: db, Context: t.Context(), Parser: p,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler),
	})
	groups, errs := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, "rules.yml")
	require.Empty(t, errs)
	for now := start.Add(-time.Nanosecond); ; {
		var next *rules.Group
		var at time.Time
		for _, g := range groups { // the earliest evaluation after now
			if t := g.EvalTimestamp(now.UnixNano()).Add(g.Interval()); next == nil || t.Before(at) {
				next, at = g, t
			}
		}
		if at.After(end) {
			break
		}
		app := db.Appender(t.Context())
		for i := range rows {
			for r := &rows[i]; len(r.Floats) > 0 && r.Floats[0].T <= at.UnixMilli(); r.Floats = r.Floats[1:] {
				_, err := app.Append(0, r.Labels, r.Floats[0].T, r.Floats[0].V)
				require.NoError(t, err)
			}
			for r := &rows[i]; len(r.Hists) > 0 && r.Hists[0].T <= at.UnixMilli(); r.Hists = r.Hists[1:] {
				_, err := app.AppendHistogram(0, r.Labels, r.Hists[0].T, nil, r.Hists[0].FH)
				require.NoError(t, err)
			}
		}
		require.NoError(t, app.Commit())
		next.Eval(t.Context(), at)
		now = at
	}
	q, err := db.Querier(math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	defer q.Close()
	out := compacttest.NewAnswer()
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", "r:.*"))
	for set.Next() {
		row := segment.Row{Labels: set.At().Labels()}
		it := set.At().Iterator(nil)
		for k := it.Next(); k != chunkenc.ValNone; k = it.Next() {
			if k == chunkenc.ValFloat {
				at, v := it.At()
				row.Floats = append(row.Floats, segment.Float{T: at, V: v})
			} else {
				at, h := it.AtFloatHistogram(nil)
				if h.CounterResetHint == histogram.NotCounterReset { // the store has only the other hints
					h.CounterResetHint = histogram.UnknownCounterReset
				}
				row.Hists = append(row.Hists, segment.Hist{T: at, FH: h})
			}
		}
		require.NoError(t, out.Add([]segment.Row{row}, nil))
	}
	require.NoError(t, set.Err())
	return out.Samples
}

// written returns the samples of rules that the store holds.
func written(t *testing.T, store objstore.Store) map[string]map[int64]compacttest.Sample {
	t.Helper()
	all, err := compacttest.Read(t.Context(), store, name)
	require.NoError(t, err)
	for k := range all.Samples {
		if !strings.Contains(k, `"r:`) {
			delete(all.Samples, k)
		}
	}
	return all.Samples
}

func backfill(t *testing.T) rulesapp.Backfill {
	t.Helper()
	s := settings.Default[importapp.Settings]()
	s.Tenant, s.MemoryLimit, s.Concurrency, s.Rollups, s.TempDir = name, 512<<20, 2, false, t.TempDir()
	return rulesapp.Backfill{Source: rulesFile(t, recorded), Import: s, Start: minutes(90), End: minutes(17 * 60)}
}

func TestBackfillIsWhatLiveEvaluationWrites(t *testing.T) {
	first := backfill(t)
	want := live(t, histories(), first.Start, first.End)
	for _, level := range []string{"12h", "2h"} {
		t.Run(level, func(t *testing.T) {
			store := newStore(nil)
			putAll(t, store, histories())
			b := backfill(t)
			b.Import.Level = level
			l := lake(t, store)
			var seen atomic.Int64
			out, err := l.Backfill(t.Context(), b, now, func(done, total int64) { seen.Store(done); require.LessOrEqual(t, done, total) })
			require.NoError(t, err)
			got := written(t, store)
			require.Equal(t, len(want), len(got))
			for k := range want {
				require.Equal(t, want[k], got[k], k)
			}
			require.Contains(t, out.Note, "evaluations failed, as they would have live, such as r:")
			require.GreaterOrEqual(t, seen.Load(), out.Evaluations)
			require.Contains(t, out.Text(), "alerting rules left out  1\n")

			again, err := l.Backfill(t.Context(), b, now, nil)
			require.NoError(t, err)
			require.Zero(t, again.Evaluations, "all of it is recorded as done")
			require.Equal(t, out.Evaluations, again.Present)
			require.Zero(t, again.Report.Blocks)
			require.Empty(t, store.Violations())
		})
	}
}

// TestBackfillAgain writes the results of rules that have changed over the former ones.
func TestBackfillAgain(t *testing.T) {
	store := newStore(nil)
	putAll(t, store, histories())
	b := backfill(t)
	b.End = minutes(5 * 60)
	l := lake(t, store)
	first, err := l.Backfill(t.Context(), b, now, nil)
	require.NoError(t, err)
	b.Attempt = 2
	b.Source = rulesFile(t, strings.ReplaceAll(recorded, "load > 3", "load > bool 3"))
	second, err := l.Backfill(t.Context(), b, now, nil)
	require.NoError(t, err)
	require.Equal(t, first.Evaluations, second.Evaluations)
	got := written(t, store)
	for k, samples := range live(t, histories(), b.Start, b.End) {
		for at, x := range samples {
			require.Equal(t, x, got[k][at], k)
		}
	}
	require.Empty(t, store.Violations())
}

// TestBackfillContinues ends a backfill at one request after another.
func TestBackfillContinues(t *testing.T) {
	b := backfill(t)
	b.End = minutes(7 * 60)
	b.Import.Level, b.Import.Concurrency = "2h", 1
	var calls, last atomic.Int64
	last.Store(math.MaxInt64)
	store := newStore(func(memstore.Call) memstore.Fault {
		if calls.Add(1) > last.Load() {
			return memstore.Fault{Err: memstore.Status(503), When: memstore.When(last.Load() % 2)} // before or after its effect
		}
		return memstore.Fault{}
	})
	putAll(t, store, histories())
	rounds := 0
	for calls.Store(0); ; rounds++ {
		calls.Store(0)
		last.Store(int64(40 + 31*rounds))
		_, err := lake(t, store).Backfill(t.Context(), b, now, nil)
		if err == nil {
			break
		}
	}
	require.Positive(t, rounds)
	last.Store(math.MaxInt64)
	want, got := live(t, histories(), b.Start, b.End), written(t, store)
	require.Equal(t, len(want), len(got))
	for k := range want {
		require.Equal(t, want[k], got[k], k)
	}
}

func TestBackfillPreview(t *testing.T) {
	store := newStore(nil)
	putAll(t, store, histories())
	b := backfill(t)
	b.Import.DryRun = true
	before := store.Keys()
	out, err := lake(t, store).Backfill(t.Context(), b, now, nil)
	require.NoError(t, err)
	require.Equal(t, before, store.Keys(), "nothing is written")
	require.Regexp(t, `evaluated +2026-03-01T01:30:00Z to 2026-03-01T17:00:00Z
recording rules +8
alerting rules left out +1
evaluations +1\.\dk in 2 windows
to write: blocks +2
to write: samples +\d\.\dk to \d\.\dk, by evaluations at some times
bytes in the store +\d+ B to \d+\.\d KiB
storage +about \$0\.0000 a month \(us-east-1, Amazon S3 Standard\)
writing +about \$0\.0001
`, out.Text())
	b.Import.DryRun = false
	done, err := lake(t, store).Backfill(t.Context(), b, now, nil)
	require.NoError(t, err)
	p := out.Preview
	for what, x := range map[string][3]int64{"samples": {p.LeastSamples, done.Report.Samples, p.MostSamples}, "bytes": {p.LeastBytes, done.Report.Bytes, p.MostBytes}} {
		require.True(t, x[0] <= x[1] && x[1] <= x[2], "%s: %d", what, x)
	}
}

func TestBackfillThatCannotBe(t *testing.T) {
	store := newStore(nil)
	putAll(t, store, histories())
	good := backfill(t)
	for _, tc := range []struct {
		what   string
		change func(*rulesapp.Backfill)
		want   string
	}{
		{"times", func(b *rulesapp.Backfill) { b.End = minutes(0) }, "want a start before the end"},
		{"start in the future", func(b *rulesapp.Backfill) { b.Start, b.End = now().Add(time.Hour), now().Add(2*time.Hour) }, "want a start before the end"},
		{"file", func(b *rulesapp.Backfill) { b.Files = []string{"none.yml"} }, "open none.yml"},
		{"rules", func(b *rulesapp.Backfill) {
			b.Source = rulesFile(t, "groups: [{name: g, rules: [{alert: A, expr: vector(1)}]}]")
		}, "rules.yml has no recording rules"},
		{"tenant", func(b *rulesapp.Backfill) { b.Import.Tenant = "a/b" }, "tenant"},
		{"memory", func(b *rulesapp.Backfill) { b.Import.MemoryLimit = 1 << 20 }, "--memory-limit of 1048576 bytes"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			b := good
			tc.change(&b)
			_, err := lake(t, store).Backfill(t.Context(), b, now, nil)
			require.ErrorContains(t, err, tc.want)
		})
	}
	t.Run("ended", func(t *testing.T) {
		t.Chdir(t.TempDir())
		b := backfill(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := fmt.Errorf("told to")
		_, err := lake(t, store).Backfill(ctx, b, now, func(int64, int64) { cancel(cause) })
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "the same command continues it")
	})
}
