package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/sql/encode"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// linesOf returns a line for each sample that keep wants, sorted, with the bits of floats.
func linesOf(t *testing.T, from storage.Queryable, keep func(kind chunkenc.ValueType, v float64) bool) []string {
	t.Helper()
	q, err := from.Querier(math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	var out []string
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		it := set.At().Iterator(nil)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			v, text := 0.0, ""
			if kind == chunkenc.ValFloat {
				_, v = it.At()
				text = fmt.Sprintf("%x", math.Float64bits(v))
			} else {
				_, h := it.AtFloatHistogram(nil)
				text = h.String()
			}
			if keep(kind, v) {
				out = append(out, fmt.Sprintf("%s %d %s", set.At().Labels(), it.AtT(), text))
			}
		}
		require.NoError(t, it.Err())
	}
	require.NoError(t, set.Err())
	slices.Sort(out)
	return out
}

func TestExport(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := promblocktest.History(7, begin.UnixMilli(), 5*time.Hour)
	source, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	promblocktest.Write(t, source, begin.UnixMilli(), begin.Add(5*time.Hour).UnixMilli(), all)
	_, errs, status := invoke(t, "import", "tsdb", source, "--store", store)
	require.Zero(t, status, errs)
	span := []string{"--store", store, "--start", "2025-12-30T00:00:00Z", "--end", "2026-01-02T00:00:00Z"}
	export := func(args ...string) (string, string, int) {
		return invoke(t, slices.Concat([]string{"export"}, span, args)...)
	}

	t.Run("tsdb", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		_, errs, status := export("--format", "tsdb", "--output", dir)
		require.Zero(t, status, errs)
		require.Contains(t, errs, "as 3 blocks in")
		blocks, err := filepath.Glob(dir + "/*")
		require.NoError(t, err)
		every := func(chunkenc.ValueType, float64) bool { return true }
		require.Equal(t, linesOf(t, promblocktest.Plain(all), every), linesOf(t, promblocktest.Queryable(t, blocks...), every))
		_, errs, status = export("--format", "tsdb", "--output", dir)
		require.NotZero(t, status)
		require.Contains(t, errs, "is not empty")
	})
	t.Run("openmetrics", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "out.om")
		_, errs, status := export("--output", file)
		require.Zero(t, status, errs)
		require.Contains(t, errs, "left out")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		want := linesOf(t, promblocktest.Plain(all), func(kind chunkenc.ValueType, v float64) bool {
			return kind == chunkenc.ValFloat && math.Float64bits(v) != value.StaleNaN
		})
		require.Equal(t, want, parsed(t, text))
		_, errs, status = export("--output", file)
		require.NotZero(t, status)
		require.Contains(t, errs, "file exists")
	})
	t.Run("parquet", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "out.parquet")
		_, errs, status := export("--format", "parquet", "--output", file)
		require.Zero(t, status, errs)
		require.Contains(t, errs, "stale markers")
		require.NotContains(t, errs, "native histograms and stale")
		require.Equal(t, parquetLines(t, promblocktest.Plain(all)), parquetRows(t, file))
		_, errs, status = export("--format", "parquet", "--output", file)
		require.NotZero(t, status)
		require.Contains(t, errs, "file exists")
		out, errs, status := export("--format", "parquet", "--match", `temperature{n="1"}`)
		require.Zero(t, status, errs)
		require.True(t, strings.HasPrefix(out, "PAR1") && strings.HasSuffix(out, "PAR1"))
	})
	t.Run("selectors", func(t *testing.T) {
		out, errs, status := export("--match", `temperature{n="1"}`, "--match", `temperature{n=~"1|2"}`, "--end", begin.Add(time.Minute).Format(time.RFC3339))
		require.Zero(t, status, errs)
		require.Contains(t, out, `temperature{cluster="west",instance="b",n="1"} `)
		require.NotContains(t, out, `n="3"`)
		require.Equal(t, 1, strings.Count(out, `n="1"`), out)
		require.True(t, strings.HasSuffix(out, "# EOF\n"))
	})
	t.Run("jsonl", func(t *testing.T) {
		out, errs, status := export("--format", "jsonl", "--match", `temperature{n="1"}`)
		require.Zero(t, status, errs)
		require.Contains(t, out, `"n":"1"`)
	})
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--format", "tsdb"}, "name it with --output"},
		{[]string{"--match", "{"}, "--match"},
		{[]string{"--end", "2020-01-01T00:00:00Z"}, "want a start before the end"},
		{[]string{"--start", "x"}, `--start "x": want now-1h, RFC 3339`},
	} {
		_, errs, status := export(tc.args...)
		require.NotZero(t, status)
		require.Contains(t, errs, tc.want)
	}
}

// parsed returns the samples of OpenMetrics text as linesOf does.
func parsed(t *testing.T, text []byte) (out []string) {
	t.Helper()
	p, err := textparse.New(text, "application/openmetrics-text; version=1.0.0", labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(t, err)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		_, at, v := p.Series()
		var ls labels.Labels
		p.Labels(&ls)
		out = append(out, fmt.Sprintf("%s %d %x", ls, *at, math.Float64bits(v)))
	}
	slices.Sort(out)
	return out
}

// parquetLines returns the rows that a Parquet file of samples has, in the form of parquetRows.
func parquetLines(t *testing.T, from storage.Queryable) (out []string) {
	t.Helper()
	q, err := from.Querier(math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		var rest []string
		ls := set.At().Labels()
		ls.Range(func(l labels.Label) {
			if l.Name != model.MetricNameLabel {
				rest = append(rest, l.Name+"="+l.Value)
			}
		})
		head := ls.Get(model.MetricNameLabel) + "{" + strings.Join(rest, ",") + "}"
		it := set.At().Iterator(nil)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			text := ""
			if kind == chunkenc.ValFloat {
				_, v := it.At()
				if value.IsStaleNaN(v) {
					continue
				}
				text = number(v)
			} else {
				_, h := it.AtFloatHistogram(nil)
				if value.IsStaleNaN(h.Sum) {
					continue
				}
				text = fmt.Sprintf("%s %s %d", number(h.Count), number(h.Sum), h.Schema)
				for b := h.AllBucketIterator(); b.Next(); {
					if x := b.At(); x.Count > 0 {
						text += fmt.Sprintf(" %s..%s:%s", number(x.Lower), number(x.Upper), number(x.Count))
					}
				}
			}
			out = append(out, fmt.Sprintf("%s %d %s", head, it.AtT(), text))
		}
		require.NoError(t, it.Err())
	}
	require.NoError(t, set.Err())
	slices.Sort(out)
	return out
}

// number is a number in the form that DuckDB and Go can both be brought to.
func number(v float64) string {
	if math.IsNaN(v) {
		return "nan"
	}
	return fmt.Sprintf("%x", v)
}

// parquetRows returns the rows of a Parquet file as DuckDB reads them.
func parquetRows(t *testing.T, file string) (out []string) {
	t.Helper()
	db := duck.New(duck.Settings{MemoryLimitBytes: 256 << 20, Threads: 1, Connections: 1, TempDir: func() (string, error) { return t.TempDir(), nil }})
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.Stream(t.Context(), `SELECT metric || '{' || array_to_string([k || '=' || labels[k] FOR k IN map_keys(labels)], ',') || '}' AS series, epoch_ms(ts) AS ts, value,
		histogram.count AS count, histogram.sum AS sum, histogram.schema AS schema,
		[b.lower FOR b IN histogram.buckets] AS lower, [b.upper FOR b IN histogram.buckets] AS upper, [b.count FOR b IN histogram.buckets] AS n
		FROM read_parquet(`+duck.Literal(file)+")")
	require.NoError(t, err)
	defer rows.Close()
	conv, err := encode.NewConverter(rows.Connection(), rows.Names(), rows.Types())
	require.NoError(t, err)
	defer conv.Close()
	for rows.Next() {
		batch, err := conv.Batch(rows.Chunk())
		require.NoError(t, err)
		float := func(i, row int) float64 { return batch.Column(i).(*array.Float64).Value(row) }
		element := func(i, at int) string {
			return number(batch.Column(i).(*array.List).ListValues().(*array.Float64).Value(at))
		}
		for row := range int(batch.NumRows()) {
			text := ""
			if batch.Column(2).IsNull(row) {
				text = fmt.Sprintf("%s %s %d", number(float(3, row)), number(float(4, row)), batch.Column(5).(*array.Int32).Value(row))
				from, to := batch.Column(6).(*array.List).ValueOffsets(row)
				for at := int(from); at < int(to); at++ {
					text += fmt.Sprintf(" %s..%s:%s", element(6, at), element(7, at), element(8, at))
				}
			} else {
				require.True(t, batch.Column(3).IsNull(row))
				text = number(float(2, row))
			}
			out = append(out, fmt.Sprintf("%s %d %s", batch.Column(0).(*array.String).Value(row), batch.Column(1).(*array.Int64).Value(row), text))
		}
		batch.Release()
	}
	require.NoError(t, rows.Err())
	slices.Sort(out)
	return out
}

// TestExportFails holds that an unreadable store ends an export with an error.
func TestExportFails(t *testing.T) {
	var out, errs bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store := filled(t)
	require.NotZero(t, run(ctx, []string{"export", "--store", store, "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-03T00:00:00Z"}, flags.Streams{Out: &out, Err: &errs}))
	require.NotContains(t, out.String(), "# EOF")
}
