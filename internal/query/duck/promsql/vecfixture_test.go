package promsql_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	upstreampromql "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
)

const (
	vecStart = int64(1_700_000_100_000) // ms; a multiple of vecStep
	vecStep  = int64(60_000)            // ms
)

// gone is the value at a step without a sample.
var gone = math.Float64frombits(value.StaleNaN)

func openVec(t testing.TB, threads int) *duck.DB {
	dir := t.TempDir()
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 1 << 30, Threads: threads, Connections: 2,
		TempDir: func() (string, error) { return dir, nil }, Setup: promsql.Register,
	})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// vecSeries has one value per step; labels that are empty are not there.
type vecSeries struct {
	name, id, g, le string
	v               []float64
}

func (s vecSeries) labels() labels.Labels {
	return labels.FromStrings(model.MetricNameLabel, s.name, "id", s.id, "g", s.g, model.BucketLabel, s.le)
}

// vecWorld is what both engines see: series in the order of their ordinals, on one grid.
type vecWorld []vecSeries

func (w vecWorld) steps() int { return len(w[0].v) }

// table creates a table of the world: i UINTEGER, name, id, g, le VARCHAR, v DOUBLE[]; rows in an
// order of chance.
func (w vecWorld) table(t testing.TB, db *duck.DB, name string) {
	t.Helper()
	var rows, values strings.Builder
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(w)) {
		s := w[i]
		fmt.Fprintf(&rows, "%d,%s,%s,%s,%s\n", i, s.name, s.id, s.g, s.le)
		for k, v := range s.v {
			fmt.Fprintf(&values, "%d,%d,%s\n", i, k, bytesOf(v))
		}
	}
	dir := t.TempDir()
	read := func(file, content, columns string) string {
		path := filepath.Join(dir, file)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return "read_csv(" + duck.Literal(path) + ", header = false, delim = ',', columns = {" + columns + "})"
	}
	sql := "CREATE OR REPLACE TABLE " + name + " AS SELECT i, name, coalesce(id, '') AS id, coalesce(g, '') AS g, le, v FROM " +
		read("rows.csv", rows.String(), "'i': 'UINTEGER', 'name': 'VARCHAR', 'id': 'VARCHAR', 'g': 'VARCHAR', 'le': 'VARCHAR'") +
		" LEFT JOIN (SELECT i, list(prom_unpack(unhex(bits))[1] ORDER BY k) AS v FROM " +
		read("values.csv", values.String(), "'i': 'UINTEGER', 'k': 'INTEGER', 'bits': 'VARCHAR'") + " GROUP BY i) USING (i)"
	vecExec(t, db, sql)
}

func vecExec(t testing.TB, db *duck.DB, sql string) {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, nil, duck.BigInt)
	require.NoError(t, err, sql)
	for rows.Next() {
	}
	require.NoError(t, rows.Err())
	rows.Close()
}

// vecLists runs a statement with the columns key VARCHAR and list DOUBLE[]. A NULL list is left
// out.
func vecLists(t testing.TB, db *duck.DB, sql string) map[string][]float64 {
	t.Helper()
	out := map[string][]float64{}
	err := db.Each(t.Context(), sql, nil, []string{duck.Varchar, duck.Doubles}, func(n int, c []duck.Vector) error {
		entries, elems := c[1].List()
		keys := c[0].Strings()
		for i := range n {
			if !c[1].Valid(i) {
				continue
			}
			key := keys[i].String()
			require.False(t, out[key] != nil, "two rows of one key %q: %s", key, sql)
			e := entries[i]
			out[key] = append([]float64{}, elems.Float64s()[e.Offset:e.Offset+e.Length]...)
		}
		return nil
	})
	require.NoError(t, err, sql)
	return out
}

func vecError(t testing.TB, db *duck.DB, sql string) error {
	t.Helper()
	err := db.Each(t.Context(), sql, nil, []string{duck.Doubles}, func(int, []duck.Vector) error { return nil })
	require.Error(t, err, sql)
	return err
}

// Querier implements storage.Queryable.
func (w vecWorld) Querier(_, _ int64) (storage.Querier, error) { return vecQuerier{w}, nil }

type vecQuerier struct{ w vecWorld }

// Select implements storage.Querier.
func (q vecQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for _, s := range q.w {
		lbls, match := s.labels(), true
		for _, m := range ms {
			match = match && m.Matches(lbls.Get(m.Name))
		}
		if !match {
			continue
		}
		var list []chunks.Sample
		for k, v := range s.v {
			if !value.IsStaleNaN(v) {
				list = append(list, point{ms: vecStart + int64(k)*vecStep, v: v})
			}
		}
		set.list = append(set.list, storage.NewListSeries(lbls, list))
	}
	return set
}

// LabelValues implements storage.LabelQuerier.
func (q vecQuerier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.LabelQuerier.
func (q vecQuerier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.LabelQuerier.
func (q vecQuerier) Close() error { return nil }

// eval evaluates a query with upstream's engine at n steps from start on: lists by the label id, or
// g where there is no id.
func (w vecWorld) eval(t testing.TB, query string, start, step int64, n int) map[string][]float64 {
	t.Helper()
	engine := upstreampromql.NewEngine(upstreampromql.EngineOpts{
		MaxSamples: math.MaxInt, Timeout: time.Hour, LookbackDelta: time.Millisecond, // a step sees only its own sample
		Parser: parser.NewParser(parser.Options{EnableExperimentalFunctions: true}),
	})
	end := start + int64(n-1)*step
	q, err := engine.NewRangeQuery(t.Context(), w, nil, query, time.UnixMilli(start), time.UnixMilli(end), time.Duration(step)*time.Millisecond)
	require.NoError(t, err, query)
	defer q.Close()
	res := q.Exec(t.Context())
	require.NoError(t, res.Err, query)
	m, err := res.Matrix()
	require.NoError(t, err)
	out := map[string][]float64{}
	for _, s := range m {
		list := make([]float64, n)
		for k := range list {
			list[k] = gone
		}
		for _, p := range s.Floats {
			list[(p.T-start)/step] = p.F
		}
		key := s.Metric.Get("id")
		if key == "" {
			key = s.Metric.Get("g")
		}
		require.False(t, out[key] != nil, "two series of one key %q: %s", key, query)
		out[key] = list
	}
	return out
}

// vecSame reports whether two values are the same: absent, NaN of any kind, the same bits, or with
// a tolerance nearly so.
func vecSame(a, b, tolerance float64) bool {
	switch {
	case value.IsStaleNaN(a) || value.IsStaleNaN(b):
		return value.IsStaleNaN(a) && value.IsStaleNaN(b)
	case math.IsNaN(a) || math.IsNaN(b):
		return math.IsNaN(a) && math.IsNaN(b)
	case math.Float64bits(a) == math.Float64bits(b):
		return true
	}
	return tolerance > 0 && math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}

// vecCompare fails the test where got is not want. A list of one element stands for every step.
func vecCompare(t testing.TB, want, got map[string][]float64, tolerance float64, what string) {
	t.Helper()
	for key, list := range want {
		g, ok := got[key]
		if !assert.True(t, ok, "%s: %q is missing", what, key) {
			continue
		}
		if len(g) == 1 {
			for len(g) < len(list) {
				g = append(g, g[0])
			}
		}
		if !assert.Len(t, g, len(list), "%s: %q", what, key) {
			continue
		}
		for k := range list {
			if !vecSame(list[k], g[k], tolerance) {
				assert.Fail(t, "differs", "%s: %q at step %d: want %v (%x), got %v (%x)", what, key, k, list[k], math.Float64bits(list[k]), g[k], math.Float64bits(g[k]))
				break
			}
		}
	}
	for key := range got {
		assert.True(t, want[key] != nil, "%s: %q is too much", what, key)
	}
}

// vecEdges are the values at which functions have their special cases.
var vecEdges = []float64{
	gone, 0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, 2, -2, 3, 7.25, 0.1, 1.0 / 3, 10, 1024, -1000.75, math.Pi, -math.Pi / 2,
	math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
	0x1p-1022, 0x1.8p-1040, 1e300, -1e-300, 1 << 52, 1<<52 + 0.5, -(1 << 53), 1<<62 + 1<<20, 1 << 63, -(1 << 63), 1e19, 0.49999999999999994, 709.9, -745.2,
	1_700_000_000, 951_782_400.5, -62_135_596_800, -2_208_988_801, 4_107_542_400,
}

// vecRandom is a value: often an edge, else of any sign and of magnitudes near 1, or anywhere.
func vecRandom(rng *rand.Rand) float64 {
	switch rng.IntN(8) {
	case 0:
		return gone
	case 1:
		return vecEdges[rng.IntN(len(vecEdges))]
	case 2:
		return float64(rng.IntN(4))
	case 3:
		return math.Float64frombits(rng.Uint64())
	default:
		return rng.NormFloat64() * 100
	}
}

// vecTame is a value whose sums do not depend much on their order.
func vecTame(rng *rand.Rand) float64 {
	if rng.IntN(6) == 0 {
		return gone
	}
	return rng.Float64() * 1000
}

// vecMake returns count series of n values, spread over groups.
func vecMake(count, groups, n int, value func() float64) vecWorld {
	w := make(vecWorld, count)
	for i := range w {
		w[i] = vecSeries{name: "m", id: strconv.Itoa(i), g: "g" + strconv.Itoa(i%groups), v: make([]float64, n)}
		for k := range w[i].v {
			w[i].v[k] = value()
		}
	}
	return w
}
