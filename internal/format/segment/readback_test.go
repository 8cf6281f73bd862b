package segment_test

import (
	"bytes"
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// flat is a row of a segment as any Parquet reader decodes it; floats are their bits.
type flat struct {
	Metric    string
	ID        uint64
	Labels    string // without the metric
	TS        []int64
	Value     []uint64
	ST        []int64
	HistTS    []int64
	HistCount []uint64
	HistSum   []uint64
	Hist      []string
	ExTS      []int64
	ExValue   []uint64
	ExLabels  []string
}

// expect returns the expected content of a file of these rows, in its order.
func expect(t *testing.T, rows []segment.Row) []flat {
	t.Helper()
	rest := func(l labels.Labels) labels.Labels { return labels.NewBuilder(l).Del(model.MetricNameLabel).Labels() }
	rows = slices.SortedFunc(slices.Values(rows), func(a, b segment.Row) int {
		return cmp.Or(strings.Compare(a.Labels.Get(model.MetricNameLabel), b.Labels.Get(model.MetricNameLabel)), labels.Compare(rest(a.Labels), rest(b.Labels)))
	})
	anyST := slices.ContainsFunc(rows, func(r segment.Row) bool {
		return slices.ContainsFunc(r.Floats, func(f segment.Float) bool { return f.ST != 0 })
	})
	var out []flat
	for _, r := range rows {
		f := flat{Metric: r.Labels.Get(model.MetricNameLabel), ID: segmenttest.ID(r.Labels), Labels: rest(r.Labels).String()}
		for _, s := range r.Floats {
			f.TS, f.Value = append(f.TS, s.T), append(f.Value, math.Float64bits(s.V))
			if anyST {
				f.ST = append(f.ST, s.ST)
			}
		}
		for _, h := range r.Hists {
			blob, err := segment.EncodeHist(h)
			require.NoError(t, err)
			count, sum := 0.0, 0.0
			if h.FH != nil {
				count, sum = h.FH.Count, h.FH.Sum
			} else {
				count, sum = float64(h.H.Count), h.H.Sum
			}
			f.HistTS, f.HistCount, f.HistSum = append(f.HistTS, h.T), append(f.HistCount, math.Float64bits(count)), append(f.HistSum, math.Float64bits(sum))
			f.Hist = append(f.Hist, string(blob))
		}
		for _, e := range r.Exemplars {
			l, err := segment.EncodeExemplarLabels(e)
			require.NoError(t, err)
			f.ExTS, f.ExValue, f.ExLabels = append(f.ExTS, e.Ts), append(f.ExValue, math.Float64bits(e.Value)), append(f.ExLabels, string(l))
		}
		out = append(out, f)
	}
	return out
}

// parquetRows reads a file through parquet-go.
func parquetRows(t *testing.T, file []byte) []flat {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	columns := f.Schema().Columns()
	var out []flat
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 7)
		for {
			n, err := rows.ReadRows(buf)
			for _, r := range buf[:n] {
				out = append(out, flatten(t, columns, r))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		require.NoError(t, rows.Close())
	}
	require.Equal(t, f.NumRows(), int64(len(out)))
	return out
}

func flatten(t *testing.T, columns [][]string, row parquet.Row) flat {
	var f flat
	b := labels.NewBuilder(labels.EmptyLabels())
	var mapKeys, mapValues []string
	for _, v := range row {
		path := columns[v.Column()]
		if len(path) > 1 && v.DefinitionLevel() == 0 {
			continue // an empty list
		}
		bits := func() uint64 { return math.Float64bits(v.Double()) }
		switch col := path[0]; col {
		case segment.ColMetric:
			f.Metric = string(v.ByteArray())
		case segment.ColSeriesID:
			f.ID = v.Uint64()
		case segment.ColLabels:
			if path[2] == "key" {
				mapKeys = append(mapKeys, string(v.ByteArray()))
			} else {
				mapValues = append(mapValues, string(v.ByteArray()))
			}
		case segment.ColTS:
			f.TS = append(f.TS, v.Int64())
		case segment.ColValue:
			f.Value = append(f.Value, bits())
		case segment.ColST:
			f.ST = append(f.ST, v.Int64())
		case segment.ColHistTS:
			f.HistTS = append(f.HistTS, v.Int64())
		case segment.ColHistCount:
			f.HistCount = append(f.HistCount, bits())
		case segment.ColHistSum:
			f.HistSum = append(f.HistSum, bits())
		case segment.ColHist:
			f.Hist = append(f.Hist, string(v.ByteArray()))
		case segment.ColExTS:
			f.ExTS = append(f.ExTS, v.Int64())
		case segment.ColExValue:
			f.ExValue = append(f.ExValue, bits())
		case segment.ColExLabels:
			f.ExLabels = append(f.ExLabels, string(v.ByteArray()))
		default:
			name, ok := strings.CutPrefix(col, segment.LabelPrefix)
			require.True(t, ok, "unknown column %s", col)
			b.Set(name, string(v.ByteArray()))
		}
	}
	require.True(t, slices.IsSorted(mapKeys))
	for i, k := range mapKeys {
		b.Set(k, mapValues[i])
	}
	f.Labels = b.Labels().String()
	return f
}

// duckdbRows reads a file through DuckDB.
func duckdbRows(t *testing.T, db *sql.DB, path string, info segment.Info) []flat {
	t.Helper()
	either := func(has bool, expr, col string) string {
		if has {
			return fmt.Sprintf(expr, col)
		}
		return "NULL"
	}
	const millis, plain = "[epoch_ms(x) FOR x IN %s]", "%s"
	columns := []string{
		"metric", "series_id", fmt.Sprintf(millis, "ts"), "value", either(info.HasST, millis, "st"),
		either(info.HasHist, millis, "h_ts"), either(info.HasHist, plain, "h_count"), either(info.HasHist, plain, "h_sum"), either(info.HasHist, plain, "h"),
		either(info.HasExemplars, millis, "ex_ts"), either(info.HasExemplars, plain, "ex_value"), either(info.HasExemplars, plain, "ex_labels"),
		either(len(info.MapNames) > 0, plain, "labels"),
	}
	for _, n := range info.LabelColumns {
		columns = append(columns, segment.LabelPrefix+n)
	}
	rows, err := db.Query(fmt.Sprintf("SELECT %s FROM read_parquet('%s')", strings.Join(columns, ", "), path))
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var out []flat
	for rows.Next() {
		out = append(out, scan(t, rows, info.LabelColumns))
	}
	require.NoError(t, rows.Err())
	return out
}

func scan(t *testing.T, rows *sql.Rows, labelColumns []string) flat {
	var f flat
	const lists = 10
	raw := make([]any, lists)
	inColumns := make([]string, len(labelColumns))
	var inMap any
	into := []any{&f.Metric, &f.ID}
	for i := range raw {
		into = append(into, &raw[i])
	}
	into = append(into, &inMap)
	for i := range inColumns {
		into = append(into, &inColumns[i])
	}
	require.NoError(t, rows.Scan(into...))
	bits := func(v float64) uint64 { return math.Float64bits(v) }
	same := func(v int64) int64 { return v }
	f.TS, f.Value, f.ST = list(raw[0], same), list(raw[1], bits), list(raw[2], same)
	f.HistTS, f.HistCount, f.HistSum = list(raw[3], same), list(raw[4], bits), list(raw[5], bits)
	f.Hist = list(raw[6], func(v []byte) string { return string(v) })
	f.ExTS, f.ExValue, f.ExLabels = list(raw[7], same), list(raw[8], bits), list(raw[9], func(v string) string { return v })
	b := labels.NewBuilder(labels.EmptyLabels())
	for i, n := range labelColumns {
		b.Set(n, inColumns[i])
	}
	if inMap != nil {
		pairs := inMap.(duckdb.OrderedMap)
		keys, values := pairs.Keys(), pairs.Values()
		for i := range keys {
			b.Set(keys[i].(string), values[i].(string))
		}
	}
	f.Labels = b.Labels().String()
	return f
}

// list converts the driver's value of a LIST; an empty one becomes nil.
func list[D, T any](raw any, convert func(D) T) []T {
	elements, _ := raw.([]any)
	var out []T
	for _, e := range elements {
		out = append(out, convert(e.(D)))
	}
	return out
}
