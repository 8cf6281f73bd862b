package parquetfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	upstream "github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/parquetfile/delta"
)

// wordPages returns a chunk of random pages in all encodings, and its values.
func wordPages(t *testing.T, rng *rand.Rand) (Chunk, []int64) {
	c := Chunk{Path: []string{"v"}, Type: format.Int64}
	var dict Numbers
	var vals []int64
	for range 1 + rng.IntN(6) {
		page := make([]int64, 1+rng.IntN(1+rng.IntN(2000)))
		bits := rng.IntN(65)
		for i := range page {
			switch {
			case i > 0 && rng.IntN(3) == 0:
				page[i] = page[i-1]
			case bits > 0:
				page[i] = int64(rng.Uint64() >> (64 - bits))
			}
		}
		p := Page{Encoding: format.DeltaBinaryPacked, Values: len(page)}
		switch rng.IntN(4) {
		case 0:
			p.Encoding = format.Plain
			for _, v := range page {
				p.Data = append(p.Data, stat(v)...)
			}
		case 1:
			p.Data = delta.AppendBytes(nil, page)
		case 2:
			var err error
			p.Data, err = new(upstream.BinaryPackedEncoding).EncodeInt64(nil, page)
			require.NoError(t, err)
		case 3:
			p.Encoding = format.RLEDictionary
			for _, v := range page {
				dict.Append(uint64(v), 1)
			}
			p.Data = dict.AppendPage(nil)
		}
		c.Pages = append(c.Pages, p)
		vals = append(vals, page...)
	}
	c.Dict, c.DictLen = dict.AppendDict(nil), dict.Distinct()
	return c, vals
}

// TestWordReader reads and skips at random in files with and without compression and with all kinds
// of page boundaries.
func TestWordReader(t *testing.T) {
	var r WordReader
	runs := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c, want := wordPages(t, rng)
		file, span := fileOf(t, c, int(seed%2)<<30)
		require.NoError(t, r.Reset(bytes.NewReader(file), span, int64(len(want))))
		for at := 0; at < len(want); {
			n := min(rng.IntN(1+rng.IntN(3000)), len(want)-at)
			switch rng.IntN(3) {
			case 0:
				require.NoError(t, r.Skip(int64(n)))
			case 1:
				bits, equal, err := r.Equal(n)
				require.NoError(t, err)
				require.LessOrEqual(t, equal, n)
				for _, v := range want[at : at+equal] {
					require.Equal(t, v, int64(bits), "seed %d, equal values from %d", seed, at)
				}
				n = equal
				runs += equal
			default:
				got := make([]int64, n)
				require.NoError(t, r.Int64s(got))
				require.Equal(t, want[at:at+n], got, "seed %d, values from %d", seed, at)
			}
			at += n
		}
		require.ErrorIs(t, r.Int64s(make([]int64, 1)), ErrFormat, "beyond the end")
		_, _, err := r.Equal(1)
		require.ErrorIs(t, err, ErrFormat, "beyond the end")
	}
	require.NotZero(t, runs)
}

// TestWordReaderRefuses changes bytes of files: values may change, but memory outside the file is
// not read, and every error is an ErrFormat.
func TestWordReaderRefuses(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		c, vals := wordPages(t, rng)
		file, span := fileOf(t, c, 1<<30)
		for range 1 + rng.IntN(5) {
			file[int(span.Offset)+rng.IntN(int(span.Length))] = byte(rng.Uint32())
		}
		if rng.IntN(3) == 0 {
			span.Length = rng.Int64N(span.Length + 1)
		}
		var r WordReader
		err := r.Reset(bytes.NewReader(file), span, int64(len(vals)))
		if err == nil {
			err = r.Skip(int64(rng.IntN(len(vals))))
		}
		if err == nil {
			_, _, err = r.Equal(1 + rng.IntN(len(vals)))
		}
		if err == nil {
			err = r.Int64s(make([]int64, len(vals)))
		}
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
		}
	}
}

// fileOf writes a chunk as a file and returns its span.
func fileOf(t *testing.T, c Chunk, plain int) ([]byte, Span) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	var out bytes.Buffer
	w := NewWriter(z)
	s := NewSchema("x")
	s.Add(Bare("v", format.Int64))
	require.NoError(t, w.Begin(&out, s.Elements(), "test", plain))
	w.Add(c, nil)
	rows := 0
	for _, p := range c.Pages {
		rows += p.Values
	}
	spans, err := w.EndGroup(rows)
	require.NoError(t, err)
	require.NoError(t, w.End(nil))
	return out.Bytes(), spans[0]
}

func BenchmarkWordReader(b *testing.B) {
	const n = 128 << 10
	for _, bits := range []int{0, 5, 8, 20} {
		vals := make([]int64, n)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range vals {
			vals[i] = int64(i)*30_000 + int64(rng.Uint64()>>(64-bits))
		}
		enc, err := new(upstream.BinaryPackedEncoding).EncodeInt64(nil, vals)
		require.NoError(b, err)
		for _, tc := range []struct {
			name string
			skip int
		}{{"all", 0}, {"last", n - 1000}} {
			b.Run(fmt.Sprintf("bits=%d/read=%s", bits, tc.name), func(b *testing.B) {
				dst := make([]uint64, n-tc.skip)
				for b.Loop() {
					var d delta.Reader
					require.NoError(b, d.Reset(enc, n))
					require.NoError(b, d.Skip(tc.skip))
					require.NoError(b, d.Read(dst))
				}
				b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mvalues/s")
			})
		}
		b.Run(fmt.Sprintf("bits=%d/read=library", bits), func(b *testing.B) {
			p := DataPage{Encoding: format.DeltaBinaryPacked, Values: enc}
			var dst []int64
			for b.Loop() {
				dst, err = p.Int64s(dst[:0], n, nil)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
	}
}

// TestPagesShareMemory: a small page between two large ones does not cost them their memory.
func TestPagesShareMemory(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	large, small := bytes.Repeat([]byte("large "), 1000), []byte("small")
	var pages [3][]byte
	for i, plain := range [][]byte{large, small, large} {
		pages[i], err = decompress(pages[max(i-1, 0)], z.EncodeAll(plain, nil), int64(len(plain)))
		require.NoError(t, err)
		require.Equal(t, plain, pages[i])
	}
	require.Same(t, &pages[0][0], &pages[2][0])
}
