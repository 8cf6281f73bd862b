package block_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
)

func exemplarText(ts int64, v float64, labels string) string {
	return fmt.Sprintf("%d %x %s", ts, math.Float64bits(v), labels)
}

// TestBlocksHoldWhatWasAppended writes random blocks of every level with small and large row groups
// and files.
func TestBlocksHoldWhatWasAppended(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := block.Options{
			Level: key.Levels[rng.IntN(len(key.Levels))], HasST: true,
			RowGroupRows: []int{1, 7, 100, 1000, 0}[rng.IntN(5)], FileBytes: []int64{1, 3000, 20_000, 0}[rng.IntN(4)],
		}
		t.Run(fmt.Sprintf("seed=%d/rows=%d/bytes=%d", seed, o.RowGroupRows, o.FileBytes), func(t *testing.T) {
			most := 300
			if o.RowGroupRows == 1 {
				most = 10
			}
			in := randomInputs(rng, rng.IntN(60), most)
			files, m := write(t, in, someMetadata, o, block.Header{Level: o.Level})
			require.Equal(t, expect(t, in), read(t, files))
			checkIndex(t, files, m, o)
		})
	}
}

// checkIndex holds the row-group index of meta.json against the files.
func checkIndex(t *testing.T, files *memFiles, m block.Meta, o block.Options) {
	t.Helper()
	again, err := block.ReadMeta(files.closed[block.MetaFile])
	require.NoError(t, err)
	require.Equal(t, m, again)
	require.Len(t, files.closed, len(m.Files)+1)
	series := tableRows(t, files, block.SeriesFile)
	require.Equal(t, int64(len(series)), m.Series)
	firstRow := map[string]int64{} // by kind
	for _, file := range m.Files {
		body := files.closed[file.Name]
		require.Equal(t, int64(len(body)), file.Bytes)
		footer := openParquet(t, body)
		rows := fileRows(t, body)
		require.Equal(t, int64(len(rows)), file.Rows)
		require.Len(t, file.RowGroups, len(footer.RowGroups()))
		for i, g := range file.RowGroups {
			kind := file.Name[:4]
			require.Equal(t, firstRow[kind], g.FirstRow)
			firstRow[kind] += g.Rows
			for j, c := range footer.Metadata().RowGroups[i].Columns {
				start := c.MetaData.DataPageOffset
				if d := c.MetaData.DictionaryPageOffset; d > 0 {
					start = d
				}
				require.Equal(t, block.Chunk{start, c.MetaData.TotalCompressedSize}, g.Columns[j])
			}
			if file.Name != block.MetadataFile {
				checkGroup(t, g, rows[:g.Rows], series, file.Name == block.SeriesFile)
			}
			if o.RowGroupRows > 0 && file.Name != block.SeriesFile {
				require.LessOrEqual(t, g.Rows, int64(o.RowGroupRows))
			}
			rows = rows[g.Rows:]
		}
	}
}

func checkGroup(t *testing.T, g block.RowGroup, rows, series []cells, isSeries bool) {
	t.Helper()
	first, last := rows[0], rows[len(rows)-1]
	require.Equal(t, []string{first.str(segment.ColMetric), last.str(segment.ColMetric)}, []string{g.FirstMetric, g.LastMetric})
	require.Equal(t, first.int(segment.ColSeriesID), series[g.FirstSeries].int(segment.ColSeriesID))
	require.Equal(t, last.int(segment.ColSeriesID), series[g.LastSeries].int(segment.ColSeriesID))
	lo, hi := segment.ColTS, segment.ColTS
	if isSeries {
		lo, hi = block.ColMinTS, block.ColMaxTS
	}
	minT, maxT := int64(math.MaxInt64), int64(math.MinInt64)
	for _, r := range rows {
		minT, maxT = min(minT, r.int(lo)), max(maxT, r.int(hi))
	}
	require.Equal(t, []int64{minT, maxT}, []int64{g.MinT, g.MaxT})
}

func TestSeriesSpanRowGroupsOnlyWhenTheyMust(t *testing.T) {
	var in []input
	for i, n := range []int{40, 50, 20, 250, 3} { // of groups of 100
		in = append(in, input{labelsOf(i), block.Samples{TS: stamps(0, 1, n), V: make([]float64, n)}})
	}
	_, m := write(t, in, nil, block.Options{RowGroupRows: 100}, block.Header{})
	var got [][3]int64
	for _, g := range m.Files[0].RowGroups {
		got = append(got, [3]int64{g.Rows, g.FirstSeries, g.LastSeries})
	}
	require.Equal(t, [][3]int64{{90, 0, 1}, {100, 2, 3}, {100, 3, 3}, {73, 3, 4}}, got)
}

func TestFilesEndBeforeTheirLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var in []input
	for i := range 200 {
		in = append(in, input{labelsOf(i), block.Samples{TS: stamps(0, 1, 100), V: randomBits(rng, 100)}})
	}
	const limit = 20_000
	files, m := write(t, in, nil, block.Options{RowGroupRows: 500, FileBytes: limit}, block.Header{})
	require.Equal(t, block.SamplesFile(0), m.Files[0].Name)
	require.Greater(t, len(m.Files), 5)
	for _, f := range m.Files[:len(m.Files)-2] {
		require.Greater(t, f.Bytes, int64(limit/2), f.Name)
		require.Less(t, f.Bytes, int64(limit+limit/4), f.Name) // the footer comes on top
	}
	require.Equal(t, expect(t, in), read(t, files))
}

// TestOddTimesAreSharedBySeries scrapes at times that are on no grid: the series of a target repeat
// them, for almost nothing.
func TestOddTimesAreSharedBySeries(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	ts := stamps(0, 10_000, 1000)
	for i := range ts {
		ts[i] += rng.Int64N(1000)
	}
	var in []input
	for i := range 50 {
		in = append(in, input{labelsOf(i), block.Samples{TS: ts, V: make([]float64, len(ts))}})
	}
	files, m := write(t, in, nil, block.Options{Level: key.L2h}, block.Header{})
	require.Equal(t, expect(t, in), read(t, files))
	const first = 2 // bytes for a time of the first series; tight packing has 1.3 for every one
	times := m.Files[0].RowGroups[0].Columns[2][1]
	require.Less(t, float64(times), first*1000+0.2*50_000)
}

func TestEmptyBlock(t *testing.T) {
	files, m := write(t, []input{{labels: labelsOf(1)}}, nil, block.Options{}, block.Header{})
	require.Equal(t, []string{block.MetaFile, block.SeriesFile}, files.names())
	require.Equal(t, []int64{0, 0, 0, -1}, []int64{m.Series, m.Floats, m.MinT, m.MaxT})
	require.Empty(t, read(t, files))
	files, m = write(t, nil, someMetadata, block.Options{}, block.Header{})
	require.Equal(t, []string{block.MetaFile, block.MetadataFile, block.SeriesFile}, files.names())
	require.Equal(t, int64(2), m.Metadata)
	rows := tableRows(t, files, block.MetadataFile)
	require.Equal(t, []string{"rpc_seconds", "histogram", "seconds", "Time of a call."}, []string{rows[0].str("metric"), rows[0].str("type"), rows[0].str("unit"), rows[0].str("help")})
}

func TestSameInputSameBytes(t *testing.T) {
	h := block.Header{Level: key.L12h, Window: 0, Rank: ulid.ULID{1}, Sources: []string{"a", "b"}}
	one, _ := write(t, everything(), someMetadata, block.Options{Level: key.L12h, HasST: true}, h)
	two, _ := write(t, everything(), someMetadata, block.Options{Level: key.L12h, HasST: true}, h)
	require.Equal(t, one.closed, two.closed)
}

// TestEqualIDs makes label sets share their hashes: every one survives under an id of its own.
func TestEqualIDs(t *testing.T) {
	in := everything()
	for _, mask := range []uint64{0, 1, 7} {
		files := newMemFiles(t)
		v, refs, by := intern(t, in)
		w, err := block.NewWriter(files, v, block.Options{HasST: true, RowGroupRows: 30})
		require.NoError(t, err)
		w.TruncateIDs(mask)
		_, err = fill(w, refs, by, nil, block.Header{})
		require.NoError(t, err)
		require.Equal(t, expect(t, in), read(t, files)) // read checks that no id is there twice
		rows := tableRows(t, files, block.SeriesFile)
		require.Equal(t, int64(v.ID(refs[0])&mask), rows[0].int(segment.ColSeriesID), "the first in block order keeps its id")
		if mask == 0 {
			for i, r := range rows {
				require.Equal(t, int64(i), r.int(segment.ColSeriesID), "the next ones get the next")
			}
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	in := []input{{labels: labelsOf(0)}, {labels: labelsOf(1)}}
	v, refs, _ := intern(t, in)
	one := &block.Samples{TS: []int64{1}, V: []float64{1}}
	for _, tc := range []struct {
		name   string
		append func(w *block.Writer) error
		want   error
	}{
		{"a series before its predecessor", func(w *block.Writer) error { return errors.Join(w.Append(refs[1], one), w.Append(refs[0], one)) }, block.ErrOrder},
		{"a series twice", func(w *block.Writer) error { return errors.Join(w.Append(refs[1], one), w.Append(refs[1], one)) }, block.ErrOrder},
		{"a value too few", func(w *block.Writer) error {
			return w.Append(refs[0], &block.Samples{TS: []int64{1, 2}, V: []float64{1}})
		}, block.ErrShape},
		{"a start timestamp too few", func(w *block.Writer) error {
			return w.Append(refs[0], &block.Samples{TS: []int64{1}, V: []float64{1}, ST: []int64{}})
		}, block.ErrShape},
		{"an unexpected start timestamp", func(w *block.Writer) error {
			return w.Append(refs[0], &block.Samples{TS: []int64{1}, V: []float64{1}, ST: []int64{1}})
		}, block.ErrShape},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, err := block.NewWriter(newMemFiles(t), v, block.Options{})
			require.NoError(t, err)
			require.ErrorIs(t, tc.append(w), tc.want)
		})
	}
	for _, o := range []block.Options{{RowGroupRows: -1}, {FileBytes: -1}, {Level: 17}} {
		_, err := block.NewWriter(newMemFiles(t), v, o)
		require.Error(t, err)
	}
}

var errDisk = errors.New("disk is full")

// brokenFiles fails the n-th operation.
type brokenFiles struct{ left int }

func (b *brokenFiles) step() error {
	if b.left--; b.left == 0 {
		return errDisk
	}
	return nil
}
func (b *brokenFiles) Create(string) (io.WriteCloser, error) { return b, b.step() }
func (b *brokenFiles) Write(p []byte) (int, error)           { return len(p), b.step() }
func (b *brokenFiles) Close() error                          { return b.step() }

// TestEveryErrorOfFilesIsReported fails each operation in turn.
func TestEveryErrorOfFilesIsReported(t *testing.T) {
	v, refs, by := intern(t, everything())
	o := block.Options{HasST: true, RowGroupRows: 20, FileBytes: 500}
	for n := 1; ; n++ {
		broken := &brokenFiles{left: n}
		w, err := block.NewWriter(broken, v, o)
		require.NoError(t, err)
		_, err = fill(w, refs, by, someMetadata, block.Header{})
		if broken.left > 0 {
			require.NoError(t, err)
			require.Greater(t, n, 40, "operations that were failed")
			return
		}
		require.ErrorIs(t, err, errDisk, "operation %d", n)
	}
}

func TestAddedFilesAreListed(t *testing.T) {
	files := newMemFiles(t)
	v, refs, by := intern(t, everything())
	w, err := block.NewWriter(files, v, block.Options{HasST: true})
	require.NoError(t, err)
	w.AddFile("rollup-5m.parquet", 7)
	m, err := fill(w, refs, by, nil, block.Header{})
	require.NoError(t, err)
	require.Equal(t, block.File{Name: "rollup-5m.parquet", Bytes: 7}, m.Files[2])
	require.NotContains(t, files.closed, "rollup-5m.parquet")
}

func TestReadMetaRefuses(t *testing.T) {
	files, _ := write(t, everything(), nil, block.Options{HasST: true}, block.Header{})
	good := files.closed[block.MetaFile]
	for _, bad := range [][]byte{nil, []byte("{}"), []byte("[]"), good[:len(good)/2], bytes.Replace(good, []byte(`"version":2`), []byte(`"version":3`), 1), []byte(`{"version":1,"level":"7h"}`)} {
		_, err := block.ReadMeta(bad)
		require.ErrorIs(t, err, block.ErrFormat, "%s", bad)
	}
}
