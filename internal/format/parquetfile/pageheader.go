package parquetfile

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"
)

// Bytes of Thrift's compact protocol. A field begins with its distance from the field before, four
// bits, and its type.
const (
	nextInt = 1<<4 | typeInt
	stop    = 0 // the end of a struct
)

// The numbers of a page header's fields that hold the header of a data page or of a dictionary.
const (
	dataField = 5
	dictField = 7
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
		b = append(b, byte((dictField-last)<<4|typeStruct))
		b = appendInt(append(b, nextInt), d.V.NumValues)
		b = appendInt(append(b, nextInt), int32(d.V.Encoding))
		return append(b, stop, stop)
	}
	d := h.DataPageHeader
	b = append(b, byte((dataField-last)<<4|typeStruct))
	b = appendInt(append(b, nextInt), d.V.NumValues)
	b = appendInt(append(b, nextInt), int32(d.V.Encoding))
	b = appendInt(append(b, nextInt), int32(d.V.DefinitionLevelEncoding))
	b = appendInt(append(b, nextInt), int32(d.V.RepetitionLevelEncoding))
	b = append(b, noStatistics...)
	return append(b, stop, stop)
}

// lastField returns the number of the last field that appendPageHeader writes.
func lastField(h *format.PageHeader) int {
	if h.DictionaryPageHeader.Valid {
		return dictField
	}
	return dataField
}

func appendInt(b []byte, v int32) []byte { return binary.AppendVarint(b, int64(v)) }

// pageHead is the used part of a PageHeader.
type pageHead struct {
	typ, plain, compressed int64
	values, encoding       int64
	crc                    int64
	hasCRC                 bool
	sum                    int64 // its checksum
	sumAt, sumEnd          int   // where that begins and ends in the header, in bytes; 0 = it has none
}

// read decodes the header at the start of b and returns its length.
func (h *pageHead) read(b []byte) (int, error) {
	*h = pageHead{typ: -1, plain: -1, compressed: -1, values: -1, encoding: -1}
	s := skimmer{b: b}
	for f := (field{}); s.next(&f); {
		switch {
		case f.id == 1:
			h.typ = s.integer(f.typ)
		case f.id == 2:
			h.plain = s.integer(f.typ)
		case f.id == 3:
			h.compressed = s.integer(f.typ)
		case f.id == 4:
			h.crc, h.hasCRC = s.integer(f.typ), true
		case (f.id == dataField || f.id == dictField) && f.typ == typeStruct:
			h.inner(&s)
		case f.id > lastHeadID && f.typ == typeInt: // headSumID, unless a field before it has a damaged number
			h.sumAt = s.at
			h.sum = s.integer(f.typ)
			h.sumEnd = s.at
		default:
			s.skip(f.typ, 1)
		}
	}
	return s.at, s.err
}

// inner decodes a DataPageHeader or DictionaryPageHeader.
func (h *pageHead) inner(s *skimmer) {
	for f := (field{}); s.next(&f); {
		switch f.id {
		case 1:
			h.values = s.integer(f.typ)
		case 2:
			h.encoding = s.integer(f.typ)
		default:
			s.skip(f.typ, 2)
		}
	}
}
