package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

// TestRunsReadBack reads runs of every width that hybrid wrote.
func TestRunsReadBack(t *testing.T) {
	for width := 1; width <= 32; width++ {
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, uint64(width)))
			var want []int
			limit := 1 << width
			h := newHybrid(nil, width, nil)
			for range rng.IntN(60) {
				v, n := rng.IntN(min(limit, 4)), []int{1, 1, 1, 2, 7, 8, 9, 64, 1000}[rng.IntN(9)]
				if rng.IntN(3) == 0 {
					v = rng.IntN(limit)
				}
				h.run(uint32(v), n)
				want = append(want, slices.Repeat([]int{v}, n)...)
			}
			var got []int
			collect := func(r Run) { got = append(got, slices.Repeat([]int{r.Index}, r.N)...) }
			b := h.finish()
			require.NoError(t, (&hybridReader{b: b, width: width}).runs(len(want), limit, collect))
			require.Equal(t, want, got)
			readsSome(t, rng, append([]byte{byte(width)}, b...), want, limit)
			if len(want) > 0 {
				require.ErrorIs(t, (&hybridReader{b: b, width: width}).runs(len(want), slices.Max(want), func(Run) {}), ErrFormat, "a value beyond the limit")
				require.ErrorIs(t, (&hybridReader{b: b[:len(b)-1], width: width}).runs(len(want), limit, func(Run) {}), ErrFormat, "cut off")
				require.ErrorIs(t, (&hybridReader{b: b, width: width}).runs(len(want)+8, limit, func(Run) {}), ErrFormat, "too few")
			}
		}
	}
}

// readsSome reads indexes of random ranges of a page by a cursor.
func readsSome(t *testing.T, rng *rand.Rand, page []byte, want []int, limit int) {
	p := &DataPage{Encoding: format.RLEDictionary, Values: page}
	c, err := p.Indexes(len(want), limit)
	require.NoError(t, err)
	for at := 0; at < len(want); {
		from := at + rng.IntN(len(want)-at)
		at = from + 1 + rng.IntN(len(want)-from)
		var got []int
		require.NoError(t, c.Runs(from, at, func(r Run) { got = append(got, slices.Repeat([]int{r.Index}, r.N)...) }))
		require.Equal(t, want[from:at], got)
	}
	require.ErrorIs(t, c.Runs(len(want), len(want)+1, func(Run) {}), ErrFormat)
	if n := len(want); n > 0 {
		c, err = p.Indexes(n, slices.Max(want))
		require.NoError(t, err)
		require.ErrorIs(t, c.Runs(0, n, func(Run) {}), ErrFormat, "a value beyond the limit")
		cut := &DataPage{Encoding: format.RLEDictionary, Values: page[:len(page)-1]}
		c, err = cut.Indexes(n, limit)
		require.NoError(t, err)
		require.ErrorIs(t, c.Runs(n-1, n, func(Run) {}), ErrFormat, "cut off")
	}
}

// listPage returns a page of lists, the first of which may continue that of the previous page.
func listPage(counts []int, continued bool) *DataPage {
	p := &DataPage{}
	rep, def := newHybrid(nil, 1, nil), newHybrid(nil, 1, nil)
	for i, n := range counts {
		p.Entries += max(n, 1)
		def.run(uint32(min(n, 1)), max(n, 1))
		if i == 0 && continued {
			rep.run(1, n)
			continue
		}
		rep.run(0, 1)
		rep.run(1, max(n, 1)-1)
	}
	p.Repetition, p.Definition = rep.finish(), def.finish()
	return p
}

func TestListsReadBack(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		counts := make([]int, 1+rng.IntN(50))
		total := 0
		for i := range counts {
			if rng.IntN(3) > 0 {
				counts[i] = 1 + rng.IntN(1+rng.IntN(100))
			}
			total += counts[i]
		}
		continued := seed%2 == 0 && counts[0] > 0
		before := []int{7}
		got, n, err := listPage(counts, continued).Lists(slices.Clone(before))
		require.NoError(t, err)
		require.Equal(t, total, n)
		if continued {
			before[0] += counts[0]
			counts = counts[1:]
		}
		require.Equal(t, append(before, counts...), got)
	}
}

func TestListsRefuse(t *testing.T) {
	bits := func(v ...uint32) []byte {
		h := newHybrid(nil, 1, nil)
		for _, b := range v {
			h.run(b, 1)
		}
		return h.finish()
	}
	for name, p := range map[string]*DataPage{
		"an empty list goes on":          {Entries: 2, Repetition: bits(0, 1), Definition: bits(0, 1)},
		"a list goes on with an empty":   {Entries: 2, Repetition: bits(0, 1), Definition: bits(1, 0)},
		"an empty list of a former page": {Entries: 1, Repetition: bits(1), Definition: bits(0)},
		"no levels":                      {Entries: 1},
	} {
		_, _, err := p.Lists(nil)
		require.ErrorIs(t, err, ErrFormat, name)
	}
}

func TestInt64sRefuse(t *testing.T) {
	vals := make([]int64, 300)
	for i := range vals {
		vals[i] = int64(i * i)
	}
	enc, err := new(delta.BinaryPackedEncoding).EncodeInt64(nil, vals)
	require.NoError(t, err)
	whole := DataPage{Encoding: format.DeltaBinaryPacked, Values: enc}
	got, err := whole.Int64s([]int64{7}, len(vals), nil)
	require.NoError(t, err)
	require.Equal(t, append([]int64{7}, vals...), got)
	for n := range enc {
		p := DataPage{Encoding: format.DeltaBinaryPacked, Values: enc[:n]}
		_, err := p.Int64s(nil, len(vals), nil)
		require.ErrorIs(t, err, ErrFormat, "cut to %d bytes", n)
	}
	huge := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, 128), 4), math.MaxInt32)
	for name, p := range map[string]DataPage{
		"more values than the page says": {Encoding: format.DeltaBinaryPacked, Values: append(huge, 0)},
		"blocks of nothing":              {Encoding: format.DeltaBinaryPacked, Values: []byte{0, 4, 1, 0}},
		"no miniblocks":                  {Encoding: format.DeltaBinaryPacked, Values: []byte{0x80, 1, 0, 1, 0}},
		"plain, cut off":                 {Encoding: format.Plain, Values: make([]byte, 7)},
		"another encoding":               {Encoding: format.ByteStreamSplit, Values: make([]byte, 8)},
	} {
		_, err := p.Int64s(nil, 1, nil)
		require.ErrorIs(t, err, ErrFormat, name)
	}
	wide := []byte{0x80, 1, 4, 33, 0, 0, 65, 0, 0, 0}
	p := DataPage{Encoding: format.DeltaBinaryPacked, Values: append(wide, make([]byte, 1000)...)}
	_, err = p.Int64s(nil, 33, nil)
	require.ErrorIs(t, err, ErrFormat, "a miniblock of 65 bits")
}

// sample returns a file with every kind of column.
func sample(t testing.TB, plain int) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	w := NewWriter(z)
	schema := NewSchema("test")
	schema.Add(String("s"))
	schema.Add(Bare("n", format.Int64))
	schema.Add(Bare("x", format.Double))
	schema.Add(List("l", Bare("element", format.Double))...)
	schema.Add(Map("m")...)
	var out bytes.Buffer
	var s Scratch
	require.NoError(t, w.Begin(&out, schema.Elements(), "test", plain))
	add := func(c Chunk, err error) {
		w.Add(c, err)
	}
	for group := range 2 {
		var names Strings
		names.Reset()
		for row := range 9 {
			names.Set(row, uint32(row/4), []string{"a", "b", "cc"})
		}
		add(names.Chunk("s", &s), nil)
		add(Int64s("n", &s, []int64{1, 2, 3, 4, 5, 6, 7, 8, int64(group)}))
		var nums Numbers
		nums.Reset()
		nums.Append(math.Float64bits(1.5), 8)
		nums.Append(math.Float64bits(-1), 1)
		add(nums.Doubles("x", &s), nil)
		var l Lists
		l.Build(&s, []int{0, 1, 0, 2, 0, 0, 0, 0, 3})
		add(l.Doubles(ListPath("l"), &s, []float64{1, 2, 3, 4, 5, 6}), nil)
		l.Build(&s, []int{0, 1, 0, 0, 0, 0, 0, 0, 0})
		add(l.Binaries(MapPath("m", "key"), &s, [][]byte{[]byte("k")}), nil)
		add(l.Binaries(MapPath("m", "value"), &s, [][]byte{[]byte("v")}), nil)
		_, err := w.EndGroup(9)
		require.NoError(t, err)
	}
	require.NoError(t, w.End([]format.KeyValue{{Key: "k", Value: "v"}}))
	return out.Bytes()
}

// readSample formats all columns of a sample's row groups. Both ways to read the footer must agree.
func readSample(file []byte) (out []string, err error) {
	l, err := ReadLayout(bytes.NewReader(file), int64(len(file)))
	if own, oerr := LayoutOf(file); !reflect.DeepEqual(l, own) || fmt.Sprint(err) != fmt.Sprint(oerr) {
		return nil, fmt.Errorf("read: %v, %v; in memory: %v, %v", err, l, oerr, own)
	}
	if err != nil {
		return nil, err
	}
	for i := range l.Groups {
		g, err := l.Read(i, bytes.NewReader(file), nil, []int{0, len(l.Leaves) - 1})
		if err != nil {
			return nil, err
		}
		var c ChunkReader
		for leaf := range l.Leaves {
			err := g.Pages(leaf, &c, func(p *DataPage) error {
				text, err := readPage(&l.Leaves[leaf], &c, p)
				out = append(out, text)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func readPage(leaf *Leaf, c *ChunkReader, p *DataPage) (text string, err error) {
	n := p.Entries
	if leaf.Nested {
		var counts []int
		if counts, n, err = p.Lists(nil); err != nil {
			return "", err
		}
		text = fmt.Sprint(counts)
	}
	switch {
	case leaf.Type == format.Int64:
		vals, err := p.Int64s(nil, n, nil)
		return fmt.Sprint(text, vals), err
	case leaf.Type == format.Double:
		dict, err := c.Doubles()
		if err != nil {
			return "", err
		}
		vals, err := p.Doubles(nil, n, dict)
		return fmt.Sprint(text, vals), err
	case c.DictLen > 0:
		dict, err := c.Strings(nil)
		if err != nil {
			return "", err
		}
		err = p.Runs(n, len(dict), func(r Run) { text += fmt.Sprintf("%d×%s ", r.N, dict[r.Index]) })
		return text, err
	}
	vals, err := p.Strings(nil, n)
	return fmt.Sprint(text, vals), err
}

func TestReadFile(t *testing.T) {
	for _, plain := range []int{0, MinCompress} {
		file := sample(t, plain)
		got, err := readSample(file)
		require.NoError(t, err)
		group := func(last int) []string {
			return []string{
				"4×a 4×b 1×cc ", fmt.Sprintf("[1 2 3 4 5 6 7 8 %d]", last), "[1.5 1.5 1.5 1.5 1.5 1.5 1.5 1.5 -1]",
				"[0 1 0 2 0 0 0 0 3][1 2 3 4 5 6]", "[0 1 0 0 0 0 0 0 0][k]", "[0 1 0 0 0 0 0 0 0][v]",
			}
		}
		require.Equal(t, slices.Concat(group(0), group(1)), got)
		l, err := ReadLayout(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": "v", KeyChecksums: "2"}, l.KeyValues)
		require.Equal(t, int64(18), l.Rows)
		require.Equal(t, 3, l.Column(ListPath("l")...))
		require.Equal(t, -1, l.Column("l"))
	}
}

// TestReadCorruptFile flips bits: a file is rejected, or read with other values, but does no harm.
func TestReadCorruptFile(t *testing.T) {
	for _, plain := range []int{0, MinCompress} {
		file := sample(t, plain)
		rng := rand.New(rand.NewPCG(uint64(plain), 8))
		for range 4000 {
			bad := slices.Clone(file)
			for range 1 + rng.IntN(3) {
				bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
			}
			if _, err := readSample(bad); err != nil {
				require.ErrorIs(t, err, ErrFormat)
			}
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add(sample(f, 0))
	f.Add(sample(f, MinCompress))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := readSample(file); err != nil {
			require.ErrorIs(t, err, ErrFormat)
		}
	})
}

// TestSplitDoubles reads a column in BYTE_STREAM_SPLIT as it was written, with parquet-go, too.
func TestSplitDoubles(t *testing.T) {
	vals := []float64{0, 1.5, -2.25, math.Inf(-1), math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.Float64frombits(0x7ff0000000000002)}
	var out bytes.Buffer
	w := newTestWriter(t)
	schema := NewSchema("test")
	schema.Add(Bare("x", format.Double))
	require.NoError(t, w.Begin(&out, schema.Elements(), "test", 0))
	w.Add(SplitDoubles("x", new(Scratch), vals), nil)
	_, err := w.EndGroup(len(vals))
	require.NoError(t, err)
	require.NoError(t, w.End(nil))

	in := bytes.NewReader(out.Bytes())
	l, err := ReadLayout(in, in.Size())
	require.NoError(t, err)
	g, err := l.Read(0, in, nil, []int{0})
	require.NoError(t, err)
	got, err := g.Doubles(0, new(ChunkReader), nil)
	require.NoError(t, err)
	stored := values(t, out.Bytes(), 0)
	require.Len(t, got, len(vals))
	for i, v := range vals {
		require.Equal(t, math.Float64bits(v), math.Float64bits(got[i]))
		require.Equal(t, math.Float64bits(v), stored[i])
	}
	short := &DataPage{Encoding: format.ByteStreamSplit, Values: make([]byte, 15)}
	_, err = short.Doubles(nil, 2, nil)
	require.ErrorIs(t, err, ErrFormat)
}

// TestEqualSchemas: layouts of files with equal schemas share their leaves, and others do not.
func TestEqualSchemas(t *testing.T) {
	file := func(names ...string) []byte {
		s := NewSchema("test")
		for _, name := range names {
			s.Add(Bare(name, format.Int64))
		}
		var out bytes.Buffer
		z, err := (*Encoders)(nil).Get(zstd.SpeedFastest)
		require.NoError(t, err)
		w := NewWriter(z)
		require.NoError(t, w.Begin(&out, s.Elements(), "test", 0))
		require.NoError(t, w.End(nil))
		return out.Bytes()
	}
	layout := func(names ...string) *Layout {
		b := file(names...)
		l, err := LayoutOf(b)
		require.NoError(t, err)
		clear(b) // the leaves are not of this memory
		require.Len(t, l.Leaves, len(names))
		for i, name := range names {
			require.Equal(t, Leaf{Path: []string{name}, Type: format.Int64}, l.Leaves[i])
		}
		return l
	}
	first := layout("a", "b")
	require.Same(t, &first.Leaves[0], &layout("a", "b").Leaves[0])
	require.NotSame(t, &first.Leaves[0], &layout("a", "c").Leaves[0])
	require.NotSame(t, &first.Leaves[0], &layout("a", "b", "c").Leaves[0], "a longer schema")
	require.NotSame(t, &first.Leaves[0], &layout("a").Leaves[0])
	for i := range 3 * keptSchemas {
		layout("a", "b")
		layout(fmt.Sprint("n", i))
	}
	require.Same(t, &first.Leaves[0], &layout("a", "b").Leaves[0], "it was used all the time")
	require.LessOrEqual(t, len(schemas.last), keptSchemas)
}
