package parquetfile

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

// TestPageHeaders compares random headers with those of parquet-go.
func TestPageHeaders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	number := func() int32 {
		switch rng.IntN(4) {
		case 0:
			return 0
		case 1:
			return int32(rng.IntN(200))
		case 2:
			return math.MaxInt32
		}
		return rng.Int32()
	}
	var b thriftBuffer
	for range 5000 {
		h := format.PageHeader{UncompressedPageSize: number(), CompressedPageSize: number(), CRC: number()}
		if rng.IntN(2) == 0 {
			h.CRC = -h.CRC
		}
		if rng.IntN(3) == 0 {
			h.Type = format.DictionaryPage
			h.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: number(), Encoding: format.Plain})
		} else {
			encodings := []format.Encoding{format.Plain, format.RLE, format.RLEDictionary, format.DeltaBinaryPacked}
			h.Type = format.DataPage
			h.DataPageHeader = thrift.New(format.DataPageHeader{
				NumValues: number(), Encoding: encodings[rng.IntN(4)], DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
			})
		}
		want, err := b.marshal(&h)
		require.NoError(t, err)
		require.Equal(t, want, appendPageHeader(nil, &h), "%+v", h)

		var head pageHead
		n, err := head.read(append(want, 1))
		require.NoError(t, err)
		require.Equal(t, len(want), n)
		read := pageHead{
			typ: int64(h.Type), plain: int64(h.UncompressedPageSize), compressed: int64(h.CompressedPageSize), crc: int64(h.CRC), hasCRC: h.CRC != 0,
			values: int64(h.DataPageHeader.V.NumValues), encoding: int64(h.DataPageHeader.V.Encoding),
		}
		if d := h.DictionaryPageHeader; d.Valid {
			read.values, read.encoding = int64(d.V.NumValues), int64(d.V.Encoding)
		}
		require.Equal(t, read, head)
		for cut := range want {
			_, err := head.read(want[:cut])
			require.Error(t, err, "%d of %d bytes", cut, len(want))
		}
	}
}
