package parquetfile

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"
)

// Bytes of Thrift's compact protocol. A field begins with its distance from the field before, four
// bits, and its type.
const (
	nextInt    = 1<<4 | typeInt
	typeInt    = 5
	typeStruct = 12
	stop       = 0 // the end of a struct
)

// noStatistics are the statistics of a data page: they say that it has no null.
const noStatistics = "\x1c\x36\x00\x00"

// appendPageHeader appends the header of a data page or of a dictionary page in Thrift's compact
// protocol: the bytes that parquet-go's encoder writes, which finds the fields by reflection. A
// small segment has more than a hundred pages.
func appendPageHeader(b []byte, h *format.PageHeader) []byte {
	b = appendInt(append(b, nextInt), int32(h.Type))
	b = appendInt(append(b, nextInt), h.UncompressedPageSize)
	b = appendInt(append(b, nextInt), h.CompressedPageSize)
	last := 3
	if h.CRC != 0 { // optional
		b, last = appendInt(append(b, nextInt), h.CRC), 4
	}
	if d := h.DictionaryPageHeader; d.Valid {
		b = append(b, byte((7-last)<<4|typeStruct))
		b = appendInt(append(b, nextInt), d.V.NumValues)
		b = appendInt(append(b, nextInt), int32(d.V.Encoding))
		return append(b, stop, stop)
	}
	d := h.DataPageHeader
	b = append(b, byte((5-last)<<4|typeStruct))
	b = appendInt(append(b, nextInt), d.V.NumValues)
	b = appendInt(append(b, nextInt), int32(d.V.Encoding))
	b = appendInt(append(b, nextInt), int32(d.V.DefinitionLevelEncoding))
	b = appendInt(append(b, nextInt), int32(d.V.RepetitionLevelEncoding))
	b = append(b, noStatistics...)
	return append(b, stop, stop)
}

func appendInt(b []byte, v int32) []byte { return binary.AppendVarint(b, int64(v)) }
