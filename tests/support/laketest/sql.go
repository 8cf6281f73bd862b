package laketest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
)

// Result is a result in memory of which nothing was sent.
type Result struct{ bytes.Buffer }

// Reset implements request.Output.
func (k *Result) Reset() bool {
	k.Buffer.Reset()
	return true
}

// Rows returns the rows of a statement, sorted, with floats as bits.
func (l *Lake) Rows(text string, params ...any) []string {
	l.TB.Helper()
	raw, err := json.Marshal(params)
	require.NoError(l.TB, err)
	if len(params) == 0 {
		raw = nil
	}
	return l.RowsOf(query.Statement{Text: text, Params: raw})
}

// RowsOf returns the rows of a statement as Rows does.
func (l *Lake) RowsOf(q query.Statement) []string {
	l.TB.Helper()
	var out Result
	q.Format = "arrow"
	require.NoError(l.TB, l.SQL(l.TB.Context(), q, &out), q.Text)
	r, err := ipc.NewReader(&out)
	require.NoError(l.TB, err)
	defer r.Release()
	rows := []string{}
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			cells := make([]string, b.NumCols())
			for j := range cells {
				cells[j] = cell(b.Column(j), i)
			}
			rows = append(rows, strings.Join(cells, " | "))
		}
	}
	require.NoError(l.TB, r.Err())
	slices.Sort(rows)
	return rows
}

func cell(a arrow.Array, i int) string {
	switch a := a.(type) {
	case *array.Float64:
		if !a.IsNull(i) {
			return fmt.Sprintf("%x", math.Float64bits(a.Value(i)))
		}
	case *array.Timestamp:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Map:
		from, end := a.ValueOffsets(i)
		var pairs []string
		for k := from; k < end; k++ {
			pairs = append(pairs, fmt.Sprintf("%s=%q", a.Keys().ValueStr(int(k)), a.Items().ValueStr(int(k))))
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	return a.ValueStr(i)
}

// RowOf renders a sample as sql renders SELECT metric, labels, ts, value.
func RowOf(l labels.Labels, t int64, v float64) string {
	var pairs []string
	l.Range(func(x labels.Label) {
		if x.Name != model.MetricNameLabel {
			pairs = append(pairs, fmt.Sprintf("%s=%q", x.Name, x.Value))
		}
	})
	return fmt.Sprintf("%s | {%s} | %d | %x", cmp.Or(l.Get(model.MetricNameLabel), "(null)"), strings.Join(pairs, ", "), t*1000, math.Float64bits(v))
}

// NaNs are the bits of NaN, whose payload depends on the processor.
var NaNs = regexp.MustCompile(`[7f]ff8[0-9a-f]{12}$`)

// WithoutPayloads replaces NaNs of any bits in rows by the text NaN.
func WithoutPayloads(rows []string) []string {
	for i, r := range rows {
		rows[i] = NaNs.ReplaceAllString(r, "NaN")
	}
	return rows
}

// Points are the points of a result as sql renders them.
func (l *Lake) Points(res *promql.Result) []string {
	require.NoError(l.TB, res.Err)
	out := []string{}
	switch v := res.Value.(type) {
	case promql.Matrix:
		for _, s := range v {
			for _, p := range s.Floats {
				out = append(out, RowOf(s.Metric, p.T, p.F))
			}
		}
	case promql.Vector:
		for _, s := range v {
			out = append(out, RowOf(s.Metric, s.T, s.F))
		}
	case promql.Scalar:
		out = append(out, RowOf(labels.EmptyLabels(), v.T, v.V))
	}
	slices.Sort(out)
	return out
}
