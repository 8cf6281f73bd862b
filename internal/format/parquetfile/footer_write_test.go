package parquetfile

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

// TestFooters compares random footers with those of parquet-go.
func TestFooters(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	number := func() int64 { return int64(rng.Uint64()>>1) >> rng.IntN(64) * int64(rng.IntN(4)/3+rng.IntN(2)) }
	text := func() string { return strings.Repeat("x", rng.IntN(300)) }
	var want, got thriftBuffer
	for range 500 {
		m := format.FileMetaData{Version: 2, NumRows: number(), CreatedBy: "t" + text(), Schema: NewSchema("root").Elements()}
		for range rng.IntN(20) {
			m.Schema = append(m.Schema, String(text()))
			m.ColumnOrders = append(m.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
		}
		for range 1 + rng.IntN(20) {
			m.KeyValueMetadata = append(m.KeyValueMetadata, format.KeyValue{Key: text(), Value: text()})
		}
		for range rng.IntN(20) {
			g := format.RowGroup{TotalByteSize: number(), NumRows: number(), FileOffset: number(), TotalCompressedSize: number(), Ordinal: int16(number())}
			for range rng.IntN(20) {
				c := format.ColumnMetaData{
					Type: format.Type(rng.IntN(8)), Codec: format.CompressionCodec(rng.IntN(8)), NumValues: number(), TotalUncompressedSize: number(), TotalCompressedSize: number(),
					DataPageOffset: number(), DictionaryPageOffset: number(),
				}
				for range rng.IntN(20) {
					c.Encoding = append(c.Encoding, format.Encoding(rng.IntN(9)))
				}
				for range rng.IntN(20) {
					c.PathInSchema = append(c.PathInSchema, text())
				}
				switch rng.IntN(4) {
				case 0:
					c.Statistics = format.Statistics{MinValue: []byte(text()), MaxValue: []byte(text())}
				case 1:
					c.Statistics = format.Statistics{MinValue: []byte{}, MaxValue: []byte(text())}
				case 2:
					c.Statistics = format.Statistics{MinValue: []byte(text())}
				}
				g.Columns = append(g.Columns, format.ColumnChunk{MetaData: c})
			}
			m.RowGroups = append(m.RowGroups, g)
		}
		a, err := want.marshal(&m)
		require.NoError(t, err)
		b, err := got.marshalFooter(&m, nil)
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
}
