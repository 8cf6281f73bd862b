package block

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/segment"
)

// Codec is how the column chunks of all files are compressed.
const Codec = format.Zstd

func floatSchema(hasST bool) *parquetfile.Schema {
	s := keySchema("promlake_samples")
	s.Add(parquetfile.Bare(ColInt, format.Int64))
	s.Add(parquetfile.Bare(ColDiv, format.Double))
	if hasST {
		s.Add(parquetfile.Timestamp(segment.ColST))
	}
	return s
}

func histSchema() *parquetfile.Schema {
	s := keySchema("promlake_histograms")
	s.Add(parquetfile.Bare(ColCount, format.Double))
	s.Add(parquetfile.Bare(ColSum, format.Double))
	s.Add(parquetfile.Bare(segment.ColHist, format.ByteArray))
	return s
}

func exemplarSchema() *parquetfile.Schema {
	s := keySchema("promlake_exemplars")
	s.Add(parquetfile.Bare(segment.ColValue, format.Double))
	s.Add(parquetfile.String(segment.ColLabels))
	return s
}

// Schema returns the schema of a file of float samples, histograms or exemplars: the root, and an element per leaf column, in the order of
// RowGroup.Columns. Errors: ErrFormat for a file whose columns cannot be told from its name (the series table's depend on the labels), and for
// a row group that has another number of them.
func (f *File) Schema() ([]format.SchemaElement, error) {
	var s []format.SchemaElement
	switch {
	case strings.HasPrefix(f.Name, "samples-"):
		plain := len(floatSchema(false).Elements()) - 1
		s = floatSchema(len(f.RowGroups) > 0 && len(f.RowGroups[0].Columns) > plain).Elements()
	case strings.HasPrefix(f.Name, "histograms-"):
		s = histSchema().Elements()
	case f.Name == ExemplarsFile:
		s = exemplarSchema().Elements()
	default:
		return nil, fmt.Errorf("%w: %s has no columns that are known beforehand", ErrFormat, f.Name)
	}
	for i := range f.RowGroups {
		if n := len(f.RowGroups[i].Columns); n != len(s)-1 {
			return nil, fmt.Errorf("%w: row group %d of %s has %d columns instead of %d", ErrFormat, i, f.Name, n, len(s)-1)
		}
	}
	return s, nil
}

// VersionKeyValue is the version in the key-value metadata of every Parquet file of a block.
func VersionKeyValue() format.KeyValue {
	return format.KeyValue{Key: KeyVersion, Value: strconv.Itoa(FormatVersion)}
}
