package parquetfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

// threeColumns writes a file of plain numbers, delta-coded numbers and a dictionary, and returns it with its schema and where its chunks are.
func threeColumns(t *testing.T, rng *rand.Rand) (file []byte, schema []format.SchemaElement, spans [][]Span, rows []int) {
	t.Helper()
	s := NewSchema("test")
	s.Add(Bare("a", format.Double))
	s.Add(Bare("b", format.Int64))
	s.Add(Uint64("c"))
	w := newTestWriter(t)
	var out bytes.Buffer
	require.NoError(t, w.Begin(&out, s.Elements(), "test", 0))
	for range 4 {
		n := 1 + rng.IntN(50)
		doubles, ints := make([]float64, n), make([]int64, n)
		var nums Numbers
		for i := range n {
			doubles[i], ints[i] = rng.Float64(), rng.Int64N(1000)
			nums.Append(rng.Uint64N(4), 1)
		}
		var scratch Scratch
		require.NoError(t, w.Add(Doubles("a", &scratch, doubles)))
		c, err := Int64s("b", &scratch, ints)
		require.NoError(t, err)
		require.NoError(t, w.Add(c))
		require.NoError(t, w.Add(nums.Uint64s("c", &scratch)))
		spans, rows = append(spans, w.EndGroup(n)), append(rows, n)
	}
	require.NoError(t, w.End(nil))
	return out.Bytes(), s.Elements(), spans, rows
}

// TestFooterOfOtherChunks puts files together from chunks of another one, and reads them with another reader and with that of this package.
func TestFooterOfOtherChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 50 {
		file, schema, spans, rows := threeColumns(t, rng)
		columns := rng.Perm(3)[:1+rng.IntN(3)]
		slices.Sort(columns)
		f := Footer{Schema: schema[:1:1], Codec: format.Zstd, KeyValues: []format.KeyValue{{Key: "k", Value: "v"}}}
		for _, c := range columns {
			f.Schema = append(f.Schema, schema[1+c])
		}
		out := []byte(Magic)
		want := make([][]uint64, len(columns))
		for g := range spans {
			if rng.IntN(2) == 0 {
				continue
			}
			group := FooterGroup{Rows: int64(rows[g])}
			for i, c := range columns {
				s := spans[g][c]
				at := Span{Offset: int64(len(out)), Length: s.Length}
				out = append(out, file[s.Offset:s.Offset+s.Length]...)
				pages, err := ReadPages(bytes.NewReader(out), at)
				require.NoError(t, err)
				require.Equal(t, group.Rows, pages.Values)
				require.Equal(t, c == 2, pages.Dict > 0)
				group.Chunks = append(group.Chunks, FooterChunk{Span: at, Pages: pages})
				first := 0
				for _, n := range rows[:g] {
					first += n
				}
				want[i] = append(want[i], values(t, file, c)[first:first+rows[g]]...)
			}
			f.Groups = append(f.Groups, group)
		}
		out, err := f.Append(out)
		require.NoError(t, err)
		for i := range columns {
			require.Equal(t, want[i], values(t, out, i))
		}
		l, err := ReadLayout(bytes.NewReader(out), int64(len(out)))
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": "v"}, l.KeyValues)
		require.Len(t, l.Groups, len(f.Groups))
		require.Equal(t, uncompressed(t, file, columns, len(f.Groups)), uncompressed(t, out, nil, len(f.Groups)))
	}
}

// uncompressed says which of a file's columns claim to be how large, if the same row groups are in it as in the whole; n = 4 are all.
func uncompressed(t *testing.T, file []byte, columns []int, n int) []string {
	t.Helper()
	if n != 4 {
		return nil
	}
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	var out []string
	for _, g := range f.Metadata().RowGroups {
		for i, c := range g.Columns {
			if columns == nil || slices.Contains(columns, i) {
				m := c.MetaData
				out = append(out, fmt.Sprint(m.PathInSchema, m.TotalUncompressedSize, m.TotalCompressedSize, m.NumValues, m.DictionaryPageOffset > 0))
			}
		}
	}
	return out
}

func TestReadPagesRefuses(t *testing.T) {
	file, _, spans, _ := threeColumns(t, rand.New(rand.NewPCG(9, 9)))
	numbers, dict := spans[0][1], spans[0][2]
	for name, s := range map[string]Span{
		"cut off": {Offset: dict.Offset, Length: dict.Length - 1}, "begins too late": {Offset: numbers.Offset + 1, Length: numbers.Length - 1},
		"a dictionary after data": {Offset: numbers.Offset, Length: numbers.Length + dict.Length}, "beyond the file": {Offset: int64(len(file)) - 3, Length: 8},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadPages(bytes.NewReader(file), s)
			require.Error(t, err)
		})
	}
	pages, err := ReadPages(bytes.NewReader(file), Span{Offset: 4})
	require.NoError(t, err)
	require.Zero(t, pages.Values)
}

// TestReadPagesOfGarbage: whatever the bytes are, it ends.
func TestReadPagesOfGarbage(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	file, _, spans, _ := threeColumns(t, rng)
	for range 5000 {
		b := bytes.Clone(file)
		s := spans[rng.IntN(4)][rng.IntN(3)]
		b[s.Offset+rng.Int64N(min(20, s.Length))] = byte(rng.Uint32())
		if p, err := ReadPages(bytes.NewReader(b), s); err == nil {
			require.LessOrEqual(t, p.Dict, s.Length)
		}
	}
}
