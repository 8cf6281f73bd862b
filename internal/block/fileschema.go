package block

import (
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/segment"
)

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
