package block

import "strings"

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

// kind names the kind of a file.
func (f *File) kind() string {
	for _, k := range []string{samplesPrefix, histogramsPrefix} {
		if strings.HasPrefix(f.Name, k) {
			return strings.TrimSuffix(k, "-")
		}
	}
	switch f.Name {
	case SeriesFile, ExemplarsFile, MetadataFile:
		return strings.TrimSuffix(f.Name, ".parquet")
	}
	return "rollups" // the files that AddFile named
}
