package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
)

// pageOf encodes one data page as Writer does, with checksums, or as before checksums were
// introduced.
func pageOf(tb testing.TB, checked bool, e format.Encoding, n int, data []byte, at int64) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(tb, err)
	body := z.EncodeAll(data, nil)
	h := format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: int32(len(data)), CompressedPageSize: int32(len(body)),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: int32(n), Encoding: e, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}),
	}
	if checked {
		h.CRC = int32(checksum.Page(body))
	}
	var thr thriftBuffer
	head, err := thr.marshal(&h)
	require.NoError(tb, err)
	head = bytes.Clone(head)
	if checked {
		head = addHeadSum(head, dataField, at)
	}
	return append(head, body...)
}

// BenchmarkChecksums reads a page of a row group with and without checksums. Incompressible doubles
// are the worst case: they have the most bytes per page and are the fastest to decode.
func BenchmarkChecksums(b *testing.B) {
	const n = 128 << 10
	rng := rand.New(rand.NewPCG(1, 2))
	times, counters, doubles := make([]int64, n), make([]int64, n), []byte(nil)
	for i := range times {
		times[i] = int64(i%2880)*30_000 + rng.Int64N(20)
		counters[i] = rng.Int64N(1000)
		if i%2880 > 0 {
			counters[i] += counters[i-1]
		}
		doubles = binary.LittleEndian.AppendUint64(doubles, rng.Uint64())
	}
	deltas := func(vals []int64) []byte {
		enc, err := new(delta.BinaryPackedEncoding).EncodeInt64(nil, vals)
		require.NoError(b, err)
		return enc
	}
	for _, tc := range []struct {
		name string
		e    format.Encoding
		data []byte
	}{{"times", format.DeltaBinaryPacked, deltas(times)}, {"counters", format.DeltaBinaryPacked, deltas(counters)}, {"random", format.Plain, doubles}} {
		for _, checked := range []bool{false, true} {
			page := pageOf(b, checked, tc.e, n, tc.data, 0)
			b.Run(fmt.Sprintf("values=%s/checksums=%t", tc.name, checked), func(b *testing.B) {
				var r WordReader
				in, dst := bytes.NewReader(page), make([]int64, n)
				b.SetBytes(int64(len(page)))
				for b.Loop() {
					require.NoError(b, r.Reset(in, Span{Length: int64(len(page))}, n))
					require.NoError(b, r.Int64s(dst))
				}
			})
		}
	}
	b.Run("crc=page", func(b *testing.B) {
		b.SetBytes(int64(len(doubles)))
		for b.Loop() {
			checksum.Page(doubles)
		}
	})
}
