package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

func newTestWriter(t *testing.T) *Writer {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	return NewWriter(z)
}

// values reads the bits of a column with another reader.
func values(t *testing.T, file []byte, column int) []uint64 {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	var out []uint64
	for _, g := range f.RowGroups() {
		pages := g.ColumnChunks()[column].Pages()
		for {
			p, err := pages.ReadPage()
			if err != nil {
				break
			}
			buf := make([]parquet.Value, p.NumValues())
			n, _ := p.Values().ReadValues(buf)
			for _, v := range buf[:n] {
				if v.Kind() == parquet.Double {
					out = append(out, math.Float64bits(v.Double()))
				} else {
					out = append(out, v.Uint64())
				}
			}
			parquet.Release(p)
		}
		require.NoError(t, pages.Close())
	}
	return out
}

// TestPagesOfOneChunkDiffer writes chunks whose data pages have different encodings, in several row
// groups, and reads them back.
func TestPagesOfOneChunkDiffer(t *testing.T) {
	w := newTestWriter(t)
	schema := NewSchema("test")
	schema.Add(Bare("n", format.Int64))
	schema.Add(Bare("x", format.Double))
	for file := range 6 { // a writer carries nothing over to the next file
		groups := 3
		if file%2 == 1 { // only files of one row group may have chunks that are not compressed
			groups = 1
		}
		rng := rand.New(rand.NewPCG(uint64(file), 1))
		var out bytes.Buffer
		var s Scratch
		require.NoError(t, w.Begin(&out, schema.Elements(), "test", MinCompress*(file%2)))
		var ints, doubles []uint64
		var spans [][]Span
		for group := range groups {
			c := Chunk{Path: []string{"n"}, Type: format.Int64}
			rows := 0
			for range 1 + rng.IntN(4) {
				p := Page{Encoding: format.Plain, Values: 1 + rng.IntN(300)}
				vals := make([]int64, p.Values)
				for i := range vals {
					vals[i] = rng.Int64() >> rng.IntN(64)
					ints = append(ints, uint64(vals[i]))
					p.Data = binary.LittleEndian.AppendUint64(p.Data, uint64(vals[i]))
				}
				if rng.IntN(2) == 0 {
					var err error
					p.Encoding = format.DeltaBinaryPacked
					p.Data, err = new(delta.BinaryPackedEncoding).EncodeInt64(nil, vals)
					require.NoError(t, err)
				}
				c.Pages = append(c.Pages, p)
				rows += p.Values
			}
			w.Add(c, nil)
			xs := make([]float64, rows)
			for i := range xs {
				xs[i] = math.Float64frombits(rng.Uint64())
				doubles = append(doubles, math.Float64bits(xs[i]))
			}
			w.Add(Doubles("x", &s, xs), nil)
			chunks, err := w.EndGroup(rows)
			require.NoError(t, err)
			spans = append(spans, chunks)
			require.Equal(t, int64(out.Len()), w.Size(), "group %d", group)
		}
		require.NoError(t, w.End([]format.KeyValue{{Key: "k", Value: fmt.Sprint(file)}}))
		require.Equal(t, int64(out.Len()), w.Size())
		require.Equal(t, ints, values(t, out.Bytes(), 0))
		require.Equal(t, doubles, values(t, out.Bytes(), 1))
		checkSpans(t, out.Bytes(), spans)
		footer, err := ReadFooter(bytes.NewReader(out.Bytes()), int64(out.Len()))
		require.NoError(t, err)
		kv, err := KeyValues(footer)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": fmt.Sprint(file), KeyChecksums: "2"}, kv)
	}
}

// checkSpans checks that the chunks fill the file from Magic to the footer without gaps.
func checkSpans(t *testing.T, file []byte, groups [][]Span) {
	t.Helper()
	at := int64(len(Magic))
	for _, g := range groups {
		for _, s := range g {
			require.Equal(t, at, s.Offset)
			at += s.Length
		}
	}
	footer, err := ReadFooter(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	require.Equal(t, int64(len(file)-len(footer)-8), at)
}

// TestNumbers writes dictionary-coded columns with few and with many distinct values.
func TestNumbers(t *testing.T) {
	var c Numbers
	var s Scratch
	for seed, distinct := range []int{1, 2, 3, 40, 5000} {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		pool := []uint64{0, math.Float64bits(math.Copysign(0, -1)), math.Float64bits(math.NaN()), 0x7ff0000000000002}
		for len(pool) < distinct {
			pool = append(pool, rng.Uint64())
		}
		pool = pool[:distinct]
		c.Reset()
		var want []uint64
		seen := map[uint64]bool{}
		for range 2 * distinct {
			v, n := pool[rng.IntN(distinct)], 1+rng.IntN(20)
			c.Append(v, n)
			seen[v] = true
			for range n {
				want = append(want, v)
			}
		}
		require.Equal(t, len(seen), c.Distinct())
		schema := NewSchema("test")
		schema.Add(Bare("x", format.Double))
		schema.Add(Uint64("n"))
		var out bytes.Buffer
		w := newTestWriter(t)
		require.NoError(t, w.Begin(&out, schema.Elements(), "test", 0))
		w.Add(c.Doubles("x", &s), nil)
		ids := c.Uint64s("n", &s)
		lo, hi := uint64(math.MaxUint64), uint64(0)
		for v := range seen {
			lo, hi = min(lo, v), max(hi, v)
		}
		require.Equal(t, [][]byte{stat(lo), stat(hi)}, [][]byte{ids.Min, ids.Max})
		w.Add(ids, nil)
		_, err := w.EndGroup(len(want))
		require.NoError(t, err)
		require.NoError(t, w.End(nil))
		require.Equal(t, want, values(t, out.Bytes(), 0))
		require.Equal(t, want, values(t, out.Bytes(), 1))
	}
}

var errOut = errors.New("out of space")

// failing fails the n-th write.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left == 0 {
		return 0, errOut
	}
	return len(p), nil
}

func TestErrorsOfTheOutput(t *testing.T) {
	schema := NewSchema("test")
	schema.Add(Bare("x", format.Double))
	var s Scratch
	for n := 1; n <= 4; n++ {
		w := newTestWriter(t)
		var c Numbers
		c.Append(1, 9)
		out := &failing{left: n}
		err := w.Begin(out, schema.Elements(), "test", 0)
		if err == nil {
			w.Add(c.Doubles("x", &s), nil)
			_, err = w.EndGroup(9)
		}
		if err == nil {
			err = w.End(nil)
		}
		require.ErrorIs(t, err, errOut, "write %d", n)
	}
}

func TestReadFooterRefuses(t *testing.T) {
	good := append(append([]byte(Magic), 1, 2, 3, 3, 0, 0, 0), Magic...)
	footer, err := ReadFooter(bytes.NewReader(good), int64(len(good)))
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 3}, footer)
	for _, bad := range []string{"", "PAR1", "PAR1PAR1PAR2", "PAR1\xff\x00\x00\x00PAR1"} {
		_, err := ReadFooter(bytes.NewReader([]byte(bad)), int64(len(bad)))
		require.ErrorIs(t, err, ErrFormat, "%q", bad)
	}
	_, err = ReadFooter(bytes.NewReader(good), -1)
	require.ErrorIs(t, err, ErrFormat, "a size that another object names wrongly")
	_, err = ReadFooter(bytes.NewReader(good[:5]), int64(len(good)))
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrFormat, "an error of the reader is no verdict on the file")
}
