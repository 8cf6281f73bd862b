package block

import (
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Columns of series.parquet that segments do not have.
const (
	ColRowStart  = "row_start"
	ColRowCount  = "row_count"
	ColHistStart = "hist_start"
	ColHistCount = "hist_count"
	ColExCount   = "ex_count"
	ColMinTS     = "min_ts"
	ColMaxTS     = "max_ts"
	ColMinMillis = "min_" + ColTSMillis // alias
	ColMaxMillis = "max_" + ColTSMillis // alias
)

// seriesKeys is the number of columns of series.parquet before those of the labels.
const seriesKeys = 2

// seriesFigures are the columns of series.parquet after those of the labels.
var seriesFigures = []string{ColRowStart, ColRowCount, ColHistStart, ColHistCount, ColExCount, ColMinTS, ColMaxTS}

// seriesAliases are the columns of series.parquet that share the bytes of others.
var seriesAliases = []struct{ name, of string }{{ColSignedID, segment.ColSeriesID}, {ColMinMillis, ColMinTS}, {ColMaxMillis, ColMaxTS}}

// seriesGroupRows is how many series a row group of series.parquet holds at most.
const seriesGroupRows = 32 << 10

// writeSeries writes series.parquet and returns its table and its label columns.
func writeSeries(files Files, z *zstd.Encoder, limit int, v *series.View, rows *entries) (*table, *segment.SeriesColumns, error) {
	labels := &segment.SeriesColumns{}
	labels.Plan(v, rows.refs)
	s := parquetfile.NewSchema("promlake_series")
	labels.Schema(s)
	for _, name := range seriesFigures {
		if name == ColMinTS || name == ColMaxTS {
			s.Add(parquetfile.Timestamp(name))
		} else {
			s.Add(parquetfile.Bare(name, format.Int64))
		}
	}
	for _, a := range seriesAliases {
		s.Add(parquetfile.Bare(a.name, format.Int64))
	}
	w := seriesWriter{
		table: newTable(files, z, func(int) string { return SeriesFile }, math.MaxInt64, s), view: v, labels: labels,
	}
	if err := w.begin(); err != nil {
		return nil, nil, err
	}
	for from := 0; from < rows.len(); from += limit {
		if err := w.group(rows, from, min(from+limit, rows.len())); err != nil {
			return nil, nil, err
		}
	}
	return w.table, labels, w.end()
}

// seriesWriter writes series.parquet.
type seriesWriter struct {
	*table
	view        *series.View
	labels      *segment.SeriesColumns
	float, hist int64 // rows of the series that are written

	// of a row group; the next one uses their memory
	ids  []uint64
	cols [][7]int64
	vals []int64
}

// group writes the rows from one to another as a row group.
func (w *seriesWriter) group(rows *entries, from, to int) error {
	n := to - from
	w.ids, w.cols, w.vals = slices.Grow(w.ids[:0], n)[:n], slices.Grow(w.cols[:0], n)[:n], slices.Grow(w.vals[:0], n)[:n]
	ids, cols, vals := w.ids, w.cols, w.vals
	v, refs := w.view, rows.refs[from:to]
	g := RowGroup{
		Rows: int64(n), FirstMetric: v.Metrics[v.Metric(refs[0])], LastMetric: v.Metrics[v.Metric(refs[len(refs)-1])],
		FirstSeries: w.rows, LastSeries: w.rows + int64(n) - 1, MinT: math.MaxInt64, MaxT: math.MinInt64,
	}
	for i := range n {
		e := rows.at(from+i, v)
		ids[i] = e.id
		cols[i] = [...]int64{w.float, int64(e.floats), w.hist, int64(e.hists), int64(e.exemplars), e.minT, e.maxT}
		w.float += int64(e.floats)
		w.hist += int64(e.hists)
		g.MinT, g.MaxT = min(g.MinT, e.minT), max(g.MaxT, e.maxT)
	}
	w.labels.Write(w.pq, &w.s, v, refs, ids)
	for c, name := range seriesFigures {
		for i := range cols {
			vals[i] = cols[i][c]
		}
		w.pq.Add(parquetfile.Int64s(name, &w.s, vals))
	}
	for _, a := range seriesAliases {
		w.pq.Alias(a.name, a.of)
	}
	return w.endGroup(g)
}
