// Package segment is the level-0 format: a Parquet file with one row per series that carries the
// series' samples of one flush in one 2h window. It knows bytes, not networks. schemas/segment.md
// is its specification.
//
// A file has these columns, in this order, all REQUIRED unless noted:
//
//	metric     STRING                   value of __name__, "" if the series has none
//	series_id  UINT64                   xxh3-64 of the label set (ID)
//	l_<name>   STRING, dictionary       one per label name of the file that is a lower-case identifier; "" = absent
//	labels     MAP<STRING, STRING>      every other label; only in files that need it
//	ts         LIST<TIMESTAMP_MS, UTC>  float samples' timestamps, ascending, unique
//	value      LIST<DOUBLE>             aligned with ts; a stale marker is the NaN 0x7ff0000000000002
//	st         LIST<TIMESTAMP_MS, UTC>  start timestamps aligned with ts, 0 = unknown; only in files that need it
//	h_ts, h_count, h_sum, h             native histograms (h: io.prometheus.write.v2.Histogram); only in files that need them
//	ex_ts, ex_value, ex_labels          exemplars (ex_labels: JSON objects); only in files that need them
//
// Rows are sorted by metric, then by the remaining labels in upstream's labels.Compare order.
package segment

import (
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// FormatVersion is written to every file's key-value metadata under "promlake.segment.version".
const FormatVersion = 1

// Column names.
const (
	ColMetric    = "metric"
	ColSeriesID  = "series_id"
	LabelPrefix  = "l_"     // + label name: see HasColumn
	ColLabels    = "labels" // MAP of the labels that have no column
	ColTS        = "ts"
	ColValue     = "value"
	ColST        = "st"
	ColHistTS    = "h_ts"
	ColHistCount = "h_count"
	ColHistSum   = "h_sum"
	ColHist      = "h"
	ColExTS      = "ex_ts"
	ColExValue   = "ex_value"
	ColExLabels  = "ex_labels"
)

// Float is one float sample. Times in ms since the Unix epoch; ST 0 = unknown.
type Float struct {
	ST, T int64
	V     float64
}

// Hist is one native histogram sample: exactly one of H and FH is set.
type Hist struct {
	ST, T int64
	H     *histogram.Histogram
	FH    *histogram.FloatHistogram
}

// Row is one series with its samples.
type Row struct {
	Labels    labels.Labels
	Floats    []Float             // ascending, unique T
	Hists     []Hist              // ascending, unique T
	Exemplars []exemplar.Exemplar // ascending Ts
}

// Metadata describes a metric family, as remote_write carries it.
type Metadata struct {
	Metric string `json:"metric"` // family name
	// counter, gauge, histogram, gaugehistogram, summary, info, stateset, unknown
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// Info is what a file's footer says: all that a planner needs without reading a column.
type Info struct {
	Version int   `json:"-"`
	Rows    int64 `json:"rows"`    // series
	Samples int64 `json:"samples"` // float and histogram samples
	// ms, over float and histogram samples and exemplars
	MinT int64 `json:"min_t"`
	// ms; below MinT if the segment holds metadata alone
	MaxT int64 `json:"max_t"`
	// label names that have a column, sorted
	LabelColumns []string `json:"label_columns,omitempty"`
	// label names that occur in the labels MAP, sorted
	MapNames     []string   `json:"map_names,omitempty"`
	HasST        bool       `json:"has_st,omitempty"`
	HasHist      bool       `json:"has_hist,omitempty"`
	HasExemplars bool       `json:"has_exemplars,omitempty"`
	Metadata     []Metadata `json:"-"` // sorted by Metric
}

// HasColumn reports whether a label of this name is stored in a column of its own (l_<name>) and not
// in the labels MAP: names that are lower-case identifiers of at most 128 bytes, for DuckDB's
// column names ignore case. A name that has a column may still be in the MAP of a file whose label
// names exceed MaxLabelColumns.
func HasColumn(name string) bool {
	if name == "" || len(name) > 128 {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !('a' <= c && c <= 'z' || c == '_' || '0' <= c && c <= '9' && i > 0) {
			return false
		}
	}
	return true
}

// MaxLabelColumns caps the label columns of one file; the names that sort after them go to the
// labels MAP.
const MaxLabelColumns = 512
