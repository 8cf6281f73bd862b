package promsql_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/store/live"
)

var stale = math.Float64frombits(value.StaleNaN)

// openRange returns a database with the functions.
func openRange(t testing.TB, threads int) *duck.DB {
	dir, b := t.TempDir(), promsql.NewBudget(0)
	var names []string
	for _, f := range functions {
		names = append(names, f.name)
	}
	names = slices.Compact(names)
	db := duck.New(duck.Settings{
		MemoryLimitBytes: 1 << 30, Threads: threads, Connections: 2,
		TempDir: func() (string, error) { return dir, nil },
		Setup: func(conn mapping.Connection) error {
			return errors.Join(promsql.Register(conn), promsql.RegisterWindows(conn, b, names))
		},
	})
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		require.NoError(t, b.Close())
	})
	return db
}

// sample is one row: a value at a time, from the source of a rank.
type sample struct {
	rank uint64
	ms   int64
	v    float64
}

// world is what both engines see: series of samples in no order.
type world struct {
	series [][]sample
}

// newest returns the samples of a series that count, in order, as package live picks them.
func newest(series []sample) []sample {
	ranks := make([]uint64, len(series))
	for i, s := range series {
		ranks[i] = s.rank
	}
	slices.Sort(ranks)
	all := make([]live.Sample, len(series))
	for i, s := range series {
		object, _ := slices.BinarySearch(ranks, s.rank)
		all[i] = live.Sample{T: s.ms, Object: object, At: i}
	}
	var out []sample
	for _, x := range live.Pick(all) {
		out = append(out, series[x.At])
	}
	return out
}

// rows writes the samples that count as a Parquet file and returns the scan that reads it:
// series_id, ts, value. Shuffled, rows of all series are interleaved; row groups are small, so that
// threads share them.
func (w world) rows(t testing.TB, db *duck.DB, rng *rand.Rand, shuffle bool) string {
	var lines []string
	for id, s := range w.series {
		for _, x := range newest(s) {
			lines = append(lines, fmt.Sprintf("%d,%d,%s\n", id, x.ms, bytesOf(x.v)))
		}
	}
	if shuffle {
		rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	}
	dir := t.TempDir()
	csv, parquet := filepath.Join(dir, "rows.csv"), filepath.Join(dir, "rows.parquet")
	require.NoError(t, os.WriteFile(csv, []byte(strings.Join(lines, "")), 0o600))
	run(t, db, "COPY (SELECT series_id, make_timestamptz(ms * 1000) AS ts, bits FROM read_csv("+duck.Literal(csv)+", header = false, delim = ',', "+
		"columns = {'series_id': 'UBIGINT', 'ms': 'BIGINT', 'bits': 'VARCHAR'})) TO "+duck.Literal(parquet)+" (FORMAT parquet, ROW_GROUP_SIZE 2048)")
	return "SELECT series_id, ts, prom_unpack(unhex(bits))[1] AS value FROM read_parquet(" + duck.Literal(parquet) + ")"
}

// bytesOf are the bytes of a value in memory, in hexadecimal: prom_unpack reads them.
func bytesOf(v float64) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
}

// run runs a statement that returns a count.
func run(t testing.TB, db *duck.DB, sql string) {
	t.Helper()
	require.NoError(t, db.Each(t.Context(), sql, nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil }), sql)
}

// lists runs a statement with the columns id and list and returns the values of every row that has
// a list.
func lists(t testing.TB, db *duck.DB, sql string) map[uint64][]float64 {
	t.Helper()
	out := map[uint64][]float64{}
	err := db.Each(t.Context(), sql, nil, []string{duck.UBigInt, duck.Doubles}, func(n int, c []duck.Vector) error {
		entries, elems := c[1].List()
		for i, id := range c[0].Uint64s() {
			if c[1].Valid(i) {
				e := entries[i]
				out[id] = append([]float64{}, elems.Float64s()[e.Offset:e.Offset+e.Length]...)
			}
		}
		return nil
	})
	require.NoError(t, err, sql)
	return out
}

// Select implements storage.Querier over the newest samples of every series.
func (w world) Select(_ context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{}
	for id, s := range w.series {
		list := make([]chunks.Sample, 0, len(s))
		for _, x := range newest(s) {
			list = append(list, point(x))
		}
		set.list = append(set.list, storage.NewListSeries(labels.FromStrings(model.MetricNameLabel, "m", "id", strconv.Itoa(id)), list))
	}
	return set
}

// Querier implements storage.Queryable.
func (w world) Querier(_, _ int64) (storage.Querier, error) { return w, nil }

// LabelValues implements storage.LabelQuerier.
func (w world) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.LabelQuerier.
func (w world) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.LabelQuerier.
func (w world) Close() error { return nil }

type seriesSet struct {
	list []storage.Series
	at   int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at <= len(s.list) }
func (s *seriesSet) At() storage.Series                { return s.list[s.at-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// point is a sample as upstream's lists take it.
type point sample

func (p point) ST() int64                     { return 0 }
func (p point) T() int64                      { return p.ms }
func (p point) F() float64                    { return p.v }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

// grid is the times of a range query, in ms.
type grid struct {
	start, step int64
	n           int
}

const lookback = 5 * time.Minute

// upstream evaluates a query with Prometheus's engine: by series, the bits at every step, absent
// ones the stale marker.
func upstream(t testing.TB, w world, query string, g grid) map[uint64][]float64 {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: math.MaxInt, Timeout: time.Hour, LookbackDelta: lookback, EnableNegativeOffset: true, EnableAtModifier: true,
		Parser: parser.NewParser(parser.Options{EnableExperimentalFunctions: true}),
	})
	end := g.start + int64(g.n-1)*g.step
	q, err := engine.NewRangeQuery(t.Context(), w, nil, query, time.UnixMilli(g.start), time.UnixMilli(end), time.Duration(g.step)*time.Millisecond)
	require.NoError(t, err, query)
	defer q.Close()
	res := q.Exec(t.Context())
	require.NoError(t, res.Err, query)
	out := map[uint64][]float64{}
	m, err := res.Matrix()
	require.NoError(t, err)
	for _, s := range m {
		id, err := strconv.ParseUint(s.Metric.Get("id"), 10, 64)
		require.NoError(t, err)
		list := make([]float64, g.n)
		for i := range list {
			list[i] = stale
		}
		for _, p := range s.Floats {
			list[(p.T-g.start)/g.step] = p.F
		}
		out[id] = list
	}
	return out
}
