package query_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// Vocabulary of the random tests: names with and without a column, names that resemble the format's
// own, and values and patterns that SQL, globbing, LIKE or another regular expression engine could
// misinterpret.
var (
	oddNames  = []string{"job", "Job", "JOB", "le", "metric", "series_id", "labels", "ts", "ünï.code", "a b", `q"uo'te`, "_x", "l_job", "9lives"}
	oddValues = []string{
		"a", "b", "A", "ab", "aab", "a\nb", "\n", " ", "'", "''", `"`, `\`, "%", "_", "*", "?", "日本", "é", "É", "k", "K", "\u212a", "s", "ſ", "x\x00y",
		"10.0.0.1:9100", "prod-eu-1", "prod-us-2", "dev-eu-1", "averylongvaluethatisnotinlined", "null", "true", "🙂",
	}
	oddPatterns = []string{
		"", ".*", ".+", "a", "a|b", "a|", "(a|b)+", "a.b", "a.*", ".*b", ".*-eu-.*", "prod-.*", "prod-(eu|us)-[0-9]", "(?i)a", "(?i)AB", "(?i)k", "(?i)é", "(?i:prod).*",
		"[^a]", "[^a]*", `\w+`, `\d+.*`, `\s`, `\S+`, `\pL+`, `\p{Greek}`, "[[:alpha:]]+", `a{2}b`, `a{1,}b?`, "(?-s:.)", "(?-s:a.b)", "(?-s).*", "^a$", "a$", "^", "$", `\Aa\z`,
		`\ba\b`, `(?m)^a$`, `(?m)a$.*`, `\x61`, `日.`, `.`, `..`, `'`, `''|"`, `\\`, `%`, `_`, `\*`, `\?`, "x\x00y", `x.y`, `(?:)`, `a??b`, `.*?b`, `(?P<n>a)b`, "(a*)*", "[a-zA-Z]", "[^\n]", `\n`,
		"null|true", "🙂", "[🙂]", `\x{1F642}`, "a{0}", "(a|b|c|d|e|prod-eu-1)", "averylong.*", `\Qa.b\E`, `[\d\-]+`, "((((a))))", `.{1,3}`, `(ab|a)(b|)`,
	}
	oddMetrics = []string{"up", "Up", "http_requests_total", "http:sum", "metric.with.dots", "日本"}
)

type world struct {
	lake   *laketest.Lake
	series []labels.Labels // distinct, sorted
	rng    *rand.Rand
}

func (w *world) pick(from []string) string { return from[w.rng.IntN(len(from))] }

// newWorld writes random series into several segments with different columns. Every series has one
// sample at t=1000 with its index.
func newWorld(t *testing.T, l *laketest.Lake, seed uint64, rewrite func([]byte) []byte) *world {
	w := &world{lake: l, rng: rand.New(rand.NewPCG(seed, 1))}
	seen := map[string]bool{}
	for range 6 {
		var rows []segment.Row
		names := make([]string, 5)
		for i := range names {
			names[i] = w.pick(oddNames)
		}
		inFile := map[string]bool{}
		for range 40 {
			m := map[string]string{}
			if w.rng.IntN(10) > 0 {
				m[model.MetricNameLabel] = w.pick(oddMetrics)
			}
			for range w.rng.IntN(4) {
				m[w.pick(names)] = w.pick(oddValues)
			}
			lset := labels.FromMap(m)
			if lset.IsEmpty() || inFile[lset.String()] {
				continue
			}
			inFile[lset.String()] = true
			if !seen[lset.String()] {
				seen[lset.String()] = true
				w.series = append(w.series, lset)
			}
			rows = append(rows, segment.Row{Labels: lset, Floats: []segment.Float{{T: 1000, V: float64(labels.StableHash(lset) % (1 << 50))}}})
		}
		l.Rewrite = rewrite
		l.Write(tenant.Default, rows)
	}
	slices.SortFunc(w.series, labels.Compare)
	return w
}

func (w *world) matcher(t *testing.T) *labels.Matcher {
	name := w.pick(append([]string{model.MetricNameLabel, model.MetricNameLabel, "absent"}, oddNames...))
	typ := labels.MatchType(w.rng.IntN(4))
	value := w.pick(append([]string{""}, oddValues...))
	switch {
	case typ == labels.MatchRegexp || typ == labels.MatchNotRegexp:
		value = w.pick(oddPatterns)
	case name == model.MetricNameLabel:
		value = w.pick(oddMetrics)
	}
	m, err := labels.NewMatcher(typ, name, value)
	require.NoError(t, err)
	return m
}

// matching is the naive answer.
func (w *world) matching(ms []*labels.Matcher) []labels.Labels {
	var out []labels.Labels
	for _, s := range w.series {
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(s.Get(m.Name)) }) {
			out = append(out, s)
		}
	}
	return out
}

func selected(t *testing.T, set storage.SeriesSet) []labels.Labels {
	t.Helper()
	var out []labels.Labels
	for set.Next() {
		s := set.At()
		out = append(out, s.Labels())
		it := s.Iterator(nil)
		require.Equal(t, chunkenc.ValFloat, it.Next())
		ts, v := it.At()
		require.Equal(t, int64(1000), ts)
		require.Equal(t, float64(labels.StableHash(s.Labels())%(1<<50)), v, "sample of another series in %s", s.Labels())
		require.Equal(t, chunkenc.ValNone, it.Next())
	}
	require.NoError(t, set.Err())
	return out
}

// check compares the stage with the naive answer for one list of matchers.
func (w *world) check(t *testing.T, q storage.Querier, ms []*labels.Matcher) {
	t.Helper()
	ctx := context.Background()
	want := w.matching(ms)
	require.Equal(t, fmt.Sprint(want), fmt.Sprint(selected(t, q.Select(ctx, true, nil, ms...))), "select %s", ms)

	names, values := map[string]bool{}, map[string]bool{}
	of := w.pick(append([]string{model.MetricNameLabel}, oddNames...))
	for _, s := range want {
		s.Range(func(l labels.Label) {
			names[l.Name] = true
			if l.Name == of {
				values[l.Value] = true
			}
		})
	}
	gotNames, _, err := q.LabelNames(ctx, nil, ms...)
	require.NoError(t, err)
	require.ElementsMatch(t, keys(names), gotNames, "label names %s", ms)
	require.True(t, slices.IsSorted(gotNames))
	gotValues, _, err := q.LabelValues(ctx, of, nil, ms...)
	require.NoError(t, err)
	require.ElementsMatch(t, keys(values), gotValues, "values of %s %s", of, ms)
	require.True(t, slices.IsSorted(gotValues))
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func TestDifferentialMatchers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rewrite func(*testing.T) func([]byte) []byte
	}{
		{"ids as written", func(*testing.T) func([]byte) []byte { return nil }},
		{"ids of one bit", func(t *testing.T) func([]byte) []byte { return truncateIDs(t) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, laketest.New(t, laketest.NewDir(t), query.Settings{}), 42, tc.rewrite(t))
			q, err := w.lake.Querier(0, 2000)
			require.NoError(t, err)
			for _, p := range oddPatterns { // every pattern on labels of both kinds and on the metric
				for _, n := range []string{"job", "Job", model.MetricNameLabel} {
					for _, typ := range []labels.MatchType{labels.MatchRegexp, labels.MatchNotRegexp} {
						w.check(t, q, []*labels.Matcher{labels.MustNewMatcher(typ, n, p)})
					}
				}
			}
			for range 150 {
				ms := make([]*labels.Matcher, w.rng.IntN(4))
				for i := range ms {
					ms[i] = w.matcher(t)
				}
				w.check(t, q, ms)
			}
		})
	}
}
