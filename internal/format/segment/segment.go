// Package segment is the level-0 format: a Parquet file with one row per series, which holds the
// series' samples of one flush in one 2h window. It reads and writes bytes and has no network
// access. schemas/segment.md specifies the format.
//
// A file has these columns, in this order, all REQUIRED unless noted:
//
//	metric     STRING                   value of __name__, "" if the series has none
//	series_id  UINT64                   xxh3-64 of the label set (ID)
//	l_<name>   STRING, dictionary       one per label name that is a lower-case identifier; "" = absent
//	labels     MAP<STRING, STRING>      every other label; only in files that need it
//	ts         LIST<TIMESTAMP_MS, UTC>  float samples' timestamps, ascending, unique
//	value      LIST<DOUBLE>             aligned with ts; a stale marker is the NaN 0x7ff0000000000002
//	st         LIST<TIMESTAMP_MS, UTC>  start timestamps aligned with ts, 0 = unknown; optional
//	h_ts, h_count, h_sum, h             native histograms (h: io.prometheus.write.v2.Histogram); optional
//	ex_ts, ex_value, ex_labels          exemplars (ex_labels: JSON objects); optional
//
// Rows are sorted by metric, then by the remaining labels in upstream's labels.Compare order.
package segment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go/format"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

// FormatVersion is written to every file's key-value metadata under "promlake.segment.version". This
// package reads all versions up to it (schemas/segment.md).
const FormatVersion = 2

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

// Metadata is the metadata of a metric family, as in remote_write.
type Metadata struct {
	Metric string `json:"metric"` // family name
	// counter, gauge, histogram, gaugehistogram, summary, info, stateset, unknown
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// Info is the content of a file's footer: everything that a planner needs without reading columns.
type Info struct {
	Version int   `json:"-"`
	Rows    int64 `json:"rows"`    // series
	Samples int64 `json:"samples"` // float and histogram samples
	// ms, earliest float sample, histogram or exemplar
	MinT int64 `json:"min_t"`
	// ms, the latest one; below MinT if the segment holds only metadata
	MaxT int64 `json:"max_t"`
	// label names that have a column, sorted
	LabelColumns []string `json:"label_columns,omitempty"`
	// label names that occur in the labels MAP, sorted
	MapNames     []string   `json:"map_names,omitempty"`
	HasST        bool       `json:"has_st,omitempty"`
	HasHist      bool       `json:"has_hist,omitempty"`
	HasExemplars bool       `json:"has_exemplars,omitempty"`
	Metadata     []Metadata `json:"-"` // sorted by Metric
	Values       Values     `json:"-"` // of all rows; nil if the segment has no filter
}

// HasColumn reports whether a label of this name has a column of its own (l_<name>) instead of an
// entry in the labels MAP. Names with a column are lower-case identifiers of at most 128 bytes,
// because column names in DuckDB are case-insensitive. In a file with more than MaxLabelColumns
// such names, the rest of them are in the MAP.
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

// MaxLabelColumns is the largest number of label columns in a file. Names that sort after them are
// in the labels MAP.
const MaxLabelColumns = 512

// Batch is the content of one segment in columns. Row i is the label set Rows[i] with the float
// samples [End[i-1], End[i]) of TS, V and ST.
type Batch struct {
	View  *series.View
	Order *series.Order // of View's label sets; nil: not known
	Rows  []series.Ref  // strictly ascending in the order of View.Compare
	End   []int         // by row
	TS    []int64       // ms; ascending and unique within a row
	V     []float64
	ST    []int64 // ms, 0 = unknown; nil if all are unknown

	Hists     []RowHists     // ascending rows
	Exemplars []RowExemplars // ascending rows
	Metadata  []Metadata     // sorted by Metric
}

// RowHists are the native histograms of a row, strictly ascending in time.
type RowHists struct {
	Row     int
	Samples []Hist
}

// RowExemplars are the exemplars of a row, ascending in time.
type RowExemplars struct {
	Row       int
	Exemplars []exemplar.Exemplar
}

const createdBy = "promlake segment version 2"

// shape is the set of optional sample columns of a file.
type shape struct{ st, hist, exemplars bool }

// schema returns the schema of a file with the label columns of c.
func (s shape) schema(c *SeriesColumns) []format.SchemaElement {
	els := parquetfile.NewSchema("promlake_segment")
	c.Schema(els)
	ts := parquetfile.Timestamp("element")
	double := parquetfile.Bare("element", format.Double)
	list := func(name string, element format.SchemaElement) { els.Add(parquetfile.List(name, element)...) }
	list(ColTS, ts)
	list(ColValue, double)
	if s.st {
		list(ColST, ts)
	}
	if s.hist {
		list(ColHistTS, ts)
		list(ColHistCount, double)
		list(ColHistSum, double)
		list(ColHist, parquetfile.Bare("element", format.ByteArray))
	}
	if s.exemplars {
		list(ColExTS, ts)
		list(ColExValue, double)
		list(ColExLabels, parquetfile.String("element"))
	}
	return els.Elements()
}

// Keys of the footer's key-value metadata.
const (
	kvVersion  = "promlake.segment.version"
	kvInfo     = "promlake.segment.info"     // JSON of Info without Version and Metadata
	kvMetadata = "promlake.segment.metadata" // JSON of []Metadata; absent if there is none
	kvValues   = "promlake.segment.values"   // base64 of Values; absent if there are none
	kvLabels   = "promlake.segment.labels"   // base64 of LabelRuns; absent if there are none
)

// ErrFormat reports bytes that are not a segment. A segment of a later version is a
// checksum.ErrUnknownVersion.
var ErrFormat = errors.New("not a promlake segment")

// checkVersion refuses the key-value metadata of a file of a version that this program does not
// know.
func checkVersion(kv map[string]string) error {
	v, ok := kv[kvVersion]
	if !ok {
		return fmt.Errorf("%w: it has no version", ErrFormat)
	}
	return checksum.CheckVersion("segments", v, FormatVersion)
}

func decodeMetadata(kv map[string]string) (m []Metadata, err error) {
	if text, ok := kv[kvMetadata]; ok {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, fmt.Errorf("%w: decode metadata: %w", ErrFormat, err)
		}
	}
	return m, nil
}

func (i *Info) keyValues() ([]format.KeyValue, error) {
	info, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("encode segment info: %w", err)
	}
	kv := []format.KeyValue{{Key: kvVersion, Value: strconv.Itoa(i.Version)}, {Key: kvInfo, Value: string(info)}}
	if len(i.Metadata) > 0 {
		m, err := json.Marshal(i.Metadata)
		if err != nil {
			return nil, fmt.Errorf("encode segment metadata: %w", err)
		}
		kv = append(kv, format.KeyValue{Key: kvMetadata, Value: string(m)})
	}
	if len(i.Values) > 0 {
		kv = append(kv, format.KeyValue{Key: kvValues, Value: i.Values.text()})
	}
	return kv, nil
}

// ReadInfo reads the footer of a segment of size bytes. Errors: ErrFormat, and those of r.
func ReadInfo(r io.ReaderAt, size int64) (Info, error) {
	footer, err := parquetfile.ReadFooter(r, size)
	if err != nil {
		return Info{}, asFormat(err)
	}
	kv, err := parquetfile.KeyValues(footer)
	if err != nil {
		return Info{}, fmt.Errorf("%w: decode footer: %w", ErrFormat, err)
	}
	if err := checkVersion(kv); err != nil {
		return Info{}, err
	}
	var info Info
	if info.Version, err = strconv.Atoi(kv[kvVersion]); err != nil {
		return Info{}, fmt.Errorf("%w: decode version: %w", ErrFormat, err)
	}
	if err := json.Unmarshal([]byte(kv[kvInfo]), &info); err != nil {
		return Info{}, fmt.Errorf("%w: decode info: %w", ErrFormat, err)
	}
	if info.Metadata, err = decodeMetadata(kv); err != nil {
		return info, err
	}
	info.Values, err = decodeValues(kv)
	return info, err
}
