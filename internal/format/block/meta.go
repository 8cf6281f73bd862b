// Package block is the compacted format: a series table and narrow sample files of one window of
// one level. It knows bytes, not networks. schemas/block.md is its specification.
//
// The objects of a block are Parquet files with REQUIRED columns only, and meta.json:
//
//	series.parquet            a row per series, in block order: metric, series_id, l_<name> ..., labels,
//	                          where its rows lie in the other files
//	samples-0000.parquet ...  a row per float sample: metric, series_id, ts, v_int, v_div, and st where
//	                          it is needed
//	histograms-0000.parquet   a row per native histogram: metric, series_id, ts, count, sum, h
//	exemplars.parquet         a row per exemplar: metric, series_id, ts, value, labels
//	metadata.parquet          a row per metric family: metric, type, unit, help
//	meta.json                 Meta: the block's contents, and where every column chunk of every file lies
//
// Files that would be empty are not written, except for series.parquet and meta.json. The rows of
// samples, histograms and exemplars lie in the order of the series table, then by time. Block order
// is series.ComparePriority.
//
// The value of a sample is v_int / v_div.
package block

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/jsontext"
	"github.com/promlake/promlake/internal/format/key"
)

// FormatVersion is the version of blocks that this package writes. It reads all versions up to it
// (schemas/block.md). meta.json has it, and every Parquet file in its key-value metadata under
// KeyVersion.
const FormatVersion = 2

// KeyVersion is the key of the version in the key-value metadata of a block's Parquet files.
const KeyVersion = "promlake.block.version"

// Names of a block's files.
const (
	MetaFile      = "meta.json"
	SeriesFile    = "series.parquet"
	ExemplarsFile = "exemplars.parquet"
	MetadataFile  = "metadata.parquet"
)

const (
	samplesPrefix    = "samples-"
	histogramsPrefix = "histograms-"
)

// SamplesFile returns the name of the n-th file of float samples, n from 0.
func SamplesFile(n int) string { return fmt.Sprintf("%s%04d.parquet", samplesPrefix, n) }

// HistogramsFile returns the name of the n-th file of native histograms, n from 0.
func HistogramsFile(n int) string { return fmt.Sprintf("%s%04d.parquet", histogramsPrefix, n) }

// ErrFormat reports bytes that are not a block. A block of a later version is a
// checksum.ErrUnknownVersion.
var ErrFormat = errors.New("not a promlake block")

// Header is the part of meta.json that the caller of Writer.Close gives.
type Header struct {
	Level          key.Level  `json:"level"`
	Window         key.Window `json:"window"` // start of the level's window, ms
	Rank           ulid.ULID  `json:"rank"`   // the highest of its sources (package live)
	DeletesThrough ulid.ULID  `json:"deletes_through"`
	Sources        []string   `json:"sources,omitempty"` // keys of segments and prefixes of blocks
	Slice          Slice      `json:"slice"`
}

// Slice is the part Index of Of equal parts of the range of series identifiers; {0, 0} and {0, 1}
// are the whole.
type Slice struct {
	Index int `json:"index"`
	Of    int `json:"of"`
}

// Meta is meta.json: all that is needed to plan a read of the block. Times are ms.
type Meta struct {
	Version int `json:"version"`
	Header
	MinT         int64    `json:"min_t"` // over float samples, histograms and exemplars, inclusive
	MaxT         int64    `json:"max_t"` // below MinT if the block holds metadata alone
	Series       int64    `json:"series"`
	Floats       int64    `json:"floats"`
	Hists        int64    `json:"histograms"`
	Exemplars    int64    `json:"exemplars"`
	Metadata     int64    `json:"metadata"`
	LabelColumns []string `json:"label_columns,omitempty"` // label names with a column in series.parquet, sorted
	MapNames     []string `json:"map_names,omitempty"`     // label names that occur in its labels MAP, sorted
	HasST        bool     `json:"has_st,omitempty"`        // sample files have the column st
	Files        []File   `json:"files"`                   // sorted by name; without meta.json
}

// File is one object of a block.
type File struct {
	Name      string     `json:"name"`
	Bytes     int64      `json:"bytes"`
	Rows      int64      `json:"rows"`
	RowGroups []RowGroup `json:"row_groups,omitempty"` // none for files that AddFile named
}

// RowGroup describes a row group of a file. The fields on metrics, series and times are meaningless
// in metadata.parquet.
type RowGroup struct {
	Rows        int64   `json:"rows"`
	FirstRow    int64   `json:"first_row"`    // counted over all files of its kind
	FirstMetric string  `json:"first_metric"` // "" also in metadata.parquet
	LastMetric  string  `json:"last_metric"`
	FirstSeries int64   `json:"first_series"` // row of series.parquet
	LastSeries  int64   `json:"last_series"`  // inclusive
	MinT        int64   `json:"min_t"`
	MaxT        int64   `json:"max_t"`
	Columns     []Chunk `json:"columns"` // in the order of the file's leaf columns

	// Pages are those of the column v_int of samples, in order. Without them, its chunk is read as a
	// whole.
	Pages []Stretch `json:"v_int_pages,omitempty"`
}

// Chunk is where a column chunk lies in its file: [offset, length] in bytes.
type Chunk [2]int64

// Bytes returns the size of all files that m names, in bytes (meta.json itself is not among them).
func (m *Meta) Bytes() int64 {
	n := int64(0)
	for i := range m.Files {
		n += m.Files[i].Bytes
	}
	return n
}

// ReadMeta decodes a meta.json and verifies its checksum, if it has one. Errors: ErrFormat, and
// checksum.ErrUnknownVersion.
func ReadMeta(b []byte) (Meta, error) {
	if _, err := checksum.Verify(b); err != nil {
		return Meta{}, fmt.Errorf("%w: %s: %w", ErrFormat, MetaFile, err)
	}
	var m Meta
	err := (&metaParser{Parser: jsontext.New(b)}).decode(&m)
	switch {
	case errors.Is(err, checksum.ErrUnknownVersion):
		return Meta{}, fmt.Errorf("decode %s: %w", MetaFile, err)
	case err != nil:
		return Meta{}, fmt.Errorf("%w: decode %s: %w", ErrFormat, MetaFile, err)
	}
	for i := range m.Files {
		for j := range m.Files[i].RowGroups {
			if err := m.Files[i].RowGroups[j].check(); err != nil {
				return Meta{}, err
			}
		}
	}
	return m, nil
}

// ColumnBytes is the size of a column in the files of one kind, in bytes, as it is stored: encoded
// and compressed, page headers included.
type ColumnBytes struct {
	File   string // samples, histograms, exemplars, metadata, series or rollups
	Column string // its name; "" for what a file has beside its listed columns, such as the footer
	Bytes  int64
}

// leaves are the columns of files by the kind of file, in the order of row groups. Series tables
// have a column for each label, so they count as a whole. Rollups have no row groups in meta.json.
var leaves = map[string][]string{
	"samples":    {"metric", "series_id", "ts", "v_int", "v_div", "st"},
	"histograms": {"metric", "series_id", "ts", "count", "sum", "h"},
	"exemplars":  {"metric", "series_id", "ts", "value", "labels"},
	"metadata":   {"metric", "type", "unit", "help"},
}

// Columns returns the sizes of all files of m, column by column. Their sum is m.Bytes.
func (m *Meta) Columns() []ColumnBytes {
	var out []ColumnBytes
	for i := range m.Files {
		f := &m.Files[i]
		kind := f.kind()
		rest := f.Bytes
		for c, name := range leaves[kind] {
			n := int64(0)
			for g := range f.RowGroups {
				if columns := f.RowGroups[g].Stored(); c < len(columns) {
					n += columns[c][1]
				}
			}
			if n > 0 {
				out = append(out, ColumnBytes{kind, name, n})
				rest -= n
			}
		}
		out = append(out, ColumnBytes{kind, "", rest})
	}
	return out
}

// Leaves are the names of the columns of files of a kind, in the order of the file.
func Leaves(kind string) []string { return leaves[kind] }

// Rollups is the kind of rollups as ColumnBytes has it.
const Rollups = "rollups"

// kind names the kind of a file: the part of its name before its number or extension.
func (f *File) kind() string {
	kind, _, _ := strings.Cut(f.Name, ".")
	if kind, _, _ = strings.Cut(kind, "-"); kind == "rollup" {
		return Rollups
	}
	return kind
}
