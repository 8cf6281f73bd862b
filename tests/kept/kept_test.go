// Package kept tests that kept answers of range queries change no answer, whatever happens to the
// data and to what is kept: late samples, deletions, compaction by the stage, and damage.
//
// It contains only tests. tests/fuzzpromql compares random queries.
package kept

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/replica"
	"github.com/promlake/promlake/tests/support/laketest"
)

// keeping returns a stage that keeps all answers that it can.
func keeping(t *testing.T, store objstore.Store, s query.Settings) *laketest.Lake {
	t.Helper()
	s.KeptAnswersSamples = 1
	return laketest.New(t, store, s)
}

// counts returns the counts of a lake's kept answers by result.
func counts(l *laketest.Lake) map[string]int {
	out := map[string]int{}
	for _, result := range []string{"hit", "miss", "written", "failed", "damaged"} {
		if n := l.Counted("promlake_query_kept_answers_total", result); n > 0 {
			out[result] = int(n)
		}
	}
	return out
}

// rowsOf are series of the names of laketest.PushRows, and histograms, over five days, by the
// seed of their values.
func rowsOf(seed int) (rows []segment.Row) {
	now := laketest.Now().UnixMilli()
	for n, name := range []string{"m1", "m1", "m1", "m2", "m2", "short", "b", "b", "h"} {
		r := segment.Row{Labels: laketest.Metric(name, "i", fmt.Sprint(n%3), "job", []string{"a", "b"}[n%2])}
		if name == "b" {
			r.Labels = laketest.Metric(name, "le", []string{"1", "+Inf"}[n%2], "job", "a")
		}
		from := now - 5*24*time.Hour.Milliseconds()
		upto := now
		if name == "short" {
			from, upto = now-80*time.Hour.Milliseconds(), now-50*time.Hour.Milliseconds()
		}
		for k, at := int64(0), from; at <= upto; k, at = k+1, at+4*time.Minute.Milliseconds()+k%7 {
			if name == "h" {
				r.Hists = append(r.Hists, segment.Hist{T: at, FH: tsdbutil.GenerateTestFloatHistogram(k % 50)})
				continue
			}
			r.Floats = append(r.Floats, segment.Float{T: at, V: 0.1*float64(k%97*int64(n+1)) + float64(seed)})
		}
		rows = append(rows, r)
	}
	return rows
}

// queries have slices that are kept, except for the queries that cannot be divided, and those whose
// answers have annotations.
var queries = []string{
	`m1`, `sum by (job) (rate(m1[30m]))`, `sum(m1) / count(m1)`, `m1 offset 1d`, `m1 offset -1d`, `m1 @ start() + on (i, job) m2`, `m1 + on () group_left () m2{i="1"} @ 1699900000`, `max_over_time(m1[1d])`,
	`sum_over_time(short[range()])`, `short`, `absent(short)`, `vector(step())`, `h`, `sum(rate(h[1h]))`, `histogram_quantile(0.9, sum by (le) (rate(b[1h])))`, `max_over_time(rate(m1[30m])[6h:1h])`,
	`time()`, `topk(1, m1)`, `count_values("v", m2)`, `{__name__=~"m[12]"}`, `quantile(2, m1)`, `m1 and on (i) short`,
}

// TestAnswers: queries whose slices are kept answer as they do otherwise, bit for bit, whatever
// happens to the data and to what is kept between them.
func TestAnswers(t *testing.T) {
	store := laketest.NewDir(t)
	plain := laketest.New(t, store, query.Settings{})
	plain.Write(tenant.Default, rowsOf(0))
	plain.Write("other", rowsOf(5))
	kept := keeping(t, store, query.Settings{})
	compactor, err := compact.New(compact.Settings{DeletionDelay: time.Millisecond}, store, nil, slog.New(slog.DiscardHandler), func() time.Time { return time.Now().Add(store.Ahead) })
	require.NoError(t, err)
	compacted := func() {
		store.Ahead += 24 * time.Hour // nobody waits for late samples
		require.NoError(t, compactor.UntilIdle(t.Context(), nil, nil))
	}
	now := laketest.Now()
	midnight := now.Truncate(24 * time.Hour)
	texts := queries
	same := func(ctx context.Context, plain, kept *laketest.Lake, about string) {
		t.Helper()
		for i, text := range texts {
			q := laketest.Query{Text: text, Start: midnight.Add(-4*24*time.Hour + 90*time.Minute), End: now, Step: time.Hour}
			if i%3 == 1 {
				q.Step, q.End = 77*time.Minute, now.Add(-5*time.Hour)
			}
			if i%3 == 2 { // all of it is kept
				q.Start, q.End = midnight.Add(-4*24*time.Hour), midnight.Add(-time.Hour)
			}
			for n := range 4 {
				switch n {
				case 2: // it moves by a step
					q.Start, q.End = q.Start.Add(q.Step), q.End.Add(q.Step)
				case 3:
					q.Start = q.Start.Add(2 * q.Step)
				}
				want, got := plain.Exec(ctx, q), kept.Exec(ctx, q)
				kept.WaitKept(t.Context())
				require.NoError(t, want.Err, "%s: %s", about, q)
				laketest.Compare(t, want, got, fmt.Sprint(about, ", query ", n, ": ", q), func(v, x float64) bool {
					return math.Float64bits(v) == math.Float64bits(x) || math.IsNaN(v) && math.IsNaN(x)
				})
				require.True(t, want.Value.(promql.Matrix).String() == got.Value.(promql.Matrix).String(), "histograms, and the order of series: %s", q)
			}
		}
	}
	since := func(before map[string]int, result string) int { return counts(kept)[result] - before[result] }
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(store.Path, key.AnswersPrefix(tenant.Default), "*", "*"))
		require.NoError(t, err)
		return found
	}

	same(t.Context(), plain, kept, "segments alone")
	require.Empty(t, files())
	compacted()
	same(t.Context(), plain, kept, "24h blocks")
	first := counts(kept)
	require.Greater(t, first["hit"], first["miss"])
	require.Equal(t, first["written"], len(files()))
	same(t.Context(), plain, keeping(t, store, query.Settings{}), "another process")
	require.Equal(t, first["written"], len(files()))
	same(t.Context(), laketest.New(t, store, laketest.PushNone), kept, "the engine alone")
	require.Equal(t, first["written"], len(files()))
	for _, path := range files() {
		name, err := filepath.Rel(store.Path, path)
		require.NoError(t, err)
		a, err := key.ParseAnswer(name)
		require.NoError(t, err)
		require.Equal(t, name, a.String())
	}

	write := func(name, i string, at time.Time) {
		plain.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric(name, "i", i, "job", "a"), Floats: []segment.Float{{T: at.UnixMilli(), V: 1e6}}}})
	}
	write("m2", "1", time.Unix(1699900000, 0))
	same(t.Context(), plain, kept, "a late sample at a time that all steps read")
	write("m1", "0", midnight.Add(-60*time.Hour))
	same(t.Context(), plain, kept, "late samples")
	compacted()
	before := counts(kept)
	same(t.Context(), plain, kept, "late samples in a block")
	require.Positive(t, since(before, "written"))
	plain.Delete(tenant.Default, []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "job", "b")}, midnight.Add(-50*time.Hour).UnixMilli(), midnight.Add(-30*time.Hour).UnixMilli())
	same(t.Context(), plain, kept, "deleted")
	compacted()
	same(t.Context(), plain, kept, "rewritten")

	before = counts(kept)
	same(tenant.With(t.Context(), "other"), plain, kept, "another tenant")
	require.Positive(t, since(before, "written"))
	for _, label := range []string{"i", "job"} {
		ha := query.Settings{HA: replica.Settings{Dedup: true, ReplicaLabel: label, ClusterLabel: map[string]string{"i": "job", "job": "i"}[label]}}
		same(t.Context(), laketest.New(t, store, ha), keeping(t, store, ha), "replicas by "+label)
	}
	starts := query.Settings{UseStartTimestamps: true}
	same(t.Context(), laketest.New(t, store, starts), keeping(t, store, starts), "start timestamps")

	texts = queries[:8]
	before = counts(kept)
	same(t.Context(), plain, kept, "all is kept that may be")
	hits := since(before, "hit")
	require.NoError(t, os.RemoveAll(filepath.Join(store.Path, key.AnswersPrefix(tenant.Default))))
	same(t.Context(), plain, kept, "nothing is left")
	other, err := os.ReadFile(files()[0])
	require.NoError(t, err)
	for name, change := range map[string]func(b []byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"empty":   func([]byte) []byte { return nil },
		"changed": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"foreign": func([]byte) []byte { return other },
	} {
		before = counts(kept)
		for _, path := range files() {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, change(b), 0o600))
		}
		same(t.Context(), plain, kept, name)
		require.Positive(t, since(before, "damaged"), name)
		before = counts(kept)
		same(t.Context(), plain, kept, name+", replaced")
		require.Zero(t, since(before, "damaged"), name)
		require.Equal(t, hits, since(before, "hit"), name)
	}
}

// query5d is a query of which four slices may be kept, in two windows.
var query5d = laketest.Query{Text: `sum by (job) (m1)`, Start: laketest.Now().Add(-100 * time.Hour), End: laketest.Now(), Step: time.Hour}

// TestOff where a query asks for other data than the present, or for none that are
// kept, and in processes that do not keep them.
func TestOff(t *testing.T) {
	store := laketest.NewDir(t)
	plain := laketest.New(t, store, query.Settings{})
	plain.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rowsOf(0))
	require.NoError(t, plain.Exec(t.Context(), query5d).Err)
	kept := keeping(t, store, query.Settings{})
	for name, ctx := range map[string]context.Context{
		"as_of":   request.WithAsOf(t.Context(), time.Now()),
		"nocache": request.WithNoCache(t.Context()),
		"cost":    request.With(t.Context(), request.Request{Quote: &request.Quote{}}),
	} {
		require.NoError(t, kept.Exec(ctx, query5d).Err, name)
	}
	large := laketest.New(t, store, query.Settings{KeptAnswersSamples: 1 << 30})
	require.NoError(t, large.Exec(t.Context(), query5d).Err)
	for _, l := range []*laketest.Lake{kept, large} {
		l.WaitKept(t.Context())
		require.Empty(t, counts(l))
	}
	require.NoDirExists(t, filepath.Join(store.Path, key.AnswersPrefix(tenant.Default)))

	explained := func() string {
		e, err := kept.Explain(t.Context(), request.Question{Text: query5d.Text, Start: query5d.Start, End: query5d.End, Step: query5d.Step})
		require.NoError(t, err)
		return e.KeptAnswers
	}
	require.Equal(t, "0 of 2 slices", explained())
	for range 2 {
		stats := &request.Stats{}
		require.NoError(t, kept.Exec(request.WithStats(t.Context(), stats), query5d).Err)
		kept.WaitKept(t.Context())
		require.EqualValues(t, counts(kept)["hit"], stats.Totals().KeptSlices)
	}
	require.Equal(t, map[string]int{"miss": 2, "written": 2, "hit": 2}, counts(kept))
	require.Equal(t, "2 of 2 slices", explained())
}

// refusing refuses to write answers.
type refusing struct{ objstore.Store }

func (s refusing) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if strings.HasPrefix(k, key.AnswersPrefix(tenant.Default)) {
		return "", errors.New("no right to write")
	}
	return s.Store.Put(ctx, k, body, cond)
}

// TestRemoteStore: a process asks the store once for what it has kept, and not again
// for what it has read. A store that refuses to write changes no answer.
func TestRemoteStore(t *testing.T) {
	dir := laketest.NewDir(t)
	plain := laketest.New(t, dir, query.Settings{})
	plain.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rowsOf(0))
	want := plain.Exec(t.Context(), query5d)
	poor := keeping(t, refusing{Store: &laketest.Remote{Store: dir}}, query.Settings{})
	for range 2 {
		laketest.Identical(t, want, poor.Exec(t.Context(), query5d), "")
		poor.WaitKept(t.Context())
	}
	n := counts(poor)
	require.Positive(t, n["failed"])
	require.LessOrEqual(t, n["failed"], 2, "after a failure it waits")

	distant := laketest.NewDistant(&laketest.Remote{Store: dir}, 0)
	l := keeping(t, distant, query.Settings{MaxStaleness: time.Hour})
	for round, requests := range []map[string]int{
		{"list": 2, "written": 2}, // of segments, and of answers
		{"answers": 2},
		{},
	} {
		clear(distant.Count)
		before := counts(l)
		laketest.Identical(t, want, l.Exec(t.Context(), query5d), round)
		l.WaitKept(t.Context())
		require.Equal(t, requests["list"], distant.Count["list"], "%d: %v", round, distant.Count)
		require.Equal(t, requests["written"], counts(l)["written"]-before["written"], round)
		require.Equal(t, requests["answers"], distant.Count["answers"], "%d: %v", round, distant.Count)
		if round == 2 {
			require.Empty(t, distant.Count)
		}
	}
}

// TestDeltas: a series of delta temporality beside what is kept makes a query one whole again: its
// running total begins with the query.
func TestDeltas(t *testing.T) {
	store := laketest.NewDir(t)
	plain := laketest.New(t, store, query.Settings{})
	plain.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rowsOf(0))
	kept := keeping(t, store, query.Settings{})
	q := query5d
	q.Text = `sum by (i) (max_over_time(m1[2h]))`
	same := func() {
		t.Helper()
		want := plain.Exec(t.Context(), q)
		for range 2 {
			laketest.Identical(t, want, kept.Exec(t.Context(), q), "")
			kept.WaitKept(t.Context())
		}
	}
	same()
	require.Equal(t, 2, counts(kept)["hit"])
	d := segment.Row{Labels: laketest.Metric("m1", "i", "9", "__temporality__", "delta")}
	for at := q.End.Add(-3 * time.Hour).UnixMilli(); at < q.End.UnixMilli(); at += 60_000 {
		d.Floats = append(d.Floats, segment.Float{ST: at - 60_000, T: at, V: 1})
	}
	plain.Write(tenant.Default, []segment.Row{d})
	before := counts(kept)
	same()
	require.Equal(t, before["written"], counts(kept)["written"])
	before = counts(kept)
	same()
	require.Equal(t, before, counts(kept), "the process knows that there are deltas")
}

// backend is the backend of the HTTP API over a stage.
type backend struct {
	promql.QueryEngine
	*query.Stage
}

// TestHTTP: statistics say how many slices were kept. With nocache, none is.
func TestHTTP(t *testing.T) {
	l := keeping(t, laketest.NewDir(t), query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rowsOf(0))
	s := settings.Default[api.Settings]()
	s.Parser = query.ParserOptions()
	h, err := api.New(s, backend{l.Engine(), l.Stage}, nil, laketest.Now, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	ask := func(more string) string {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=1h&stats=all%s", url.QueryEscape(query5d.Text), query5d.Start.Unix(), query5d.End.Unix(), more), nil))
		require.Equal(t, http.StatusOK, rec.Code, rec.Body)
		l.WaitKept(t.Context())
		return rec.Body.String()
	}
	result := func(body string) string {
		_, body, _ = strings.Cut(body, `"result":`)
		body, _, _ = strings.Cut(body, `,"stats":`)
		return body
	}
	first := ask("&nocache=1")
	require.NotContains(t, first, "keptSlices")
	require.Empty(t, counts(l))
	require.NotContains(t, ask(""), "keptSlices")
	again := ask("")
	require.Contains(t, again, `"keptSlices":2`)
	require.Contains(t, again, `"totalQueryableSamplesPerStep"`)
	require.Greater(t, len(result(first)), 1000, first)
	require.Equal(t, result(first), result(again))
	require.NotContains(t, ask("&nocache=true"), "keptSlices")
	require.Contains(t, ask("&nocache=0"), "keptSlices")
}
