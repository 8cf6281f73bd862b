package promblock_test

import (
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/senders/promblock"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// TestHostileChunk holds that a chunk whose checksum matches, but which upstream's decoder panics
// about or makes room for that is never filled, is an error like any other corrupt chunk.
func TestHostileChunk(t *testing.T) {
	dir := promblocktest.Write(t, t.TempDir(), 0, 300_000, history())
	file := filepath.Join(dir, "chunks", "000001")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, tc := range []struct {
		encoding chunkenc.Encoding
		data     []byte
		want     string
	}{
		// One byte is less than the number of samples has.
		{chunkenc.EncXOR, []byte{0}, "it cannot be decoded"},
		// One sample, zero threshold 0, schema 0 (bit 0), one positive span (10 001) of 2^24
		// buckets (1111110 and 25 bits), offset 0 (bit 0), no negative span (bit 0), and no more.
		{chunkenc.EncHistogram, []byte{0, 1, 0, 0, 0b0100_0111, 0b1111_0100, 0, 0, 0}, "its spans have more than 72 buckets, the limit of a chunk of 9 bytes"},
	} {
		// The first chunk, at offset 8: length, encoding, data, CRC-32C of encoding and data.
		chunk := append([]byte{byte(len(tc.data)), byte(tc.encoding)}, tc.data...)
		chunk = binary.BigEndian.AppendUint32(chunk, crc32.Checksum(chunk[1:], castagnoli))
		copy(raw[8:], chunk)
		require.NoError(t, os.WriteFile(file, raw, 0o600))
		_, _, _, err = read(t, dir, promblock.Options{}, 0, 300_000)
		var corrupt *promblock.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Equal(t, 8, corrupt.Offset)
		require.ErrorContains(t, err, tc.want)
	}
}

// indexed replaces the index of a block by one with series a and b, whose chunks are those of series
// a and b of history, from 0 to a time that it claims.
func indexed(t *testing.T, dir string, claimed int64, a, b labels.Labels) {
	t.Helper()
	places := map[string][]chunks.Meta{}
	block, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), dir, nil, nil)
	require.NoError(t, err)
	r, err := block.Index()
	require.NoError(t, err)
	name, value := index.AllPostingsKey()
	p, err := r.Postings(t.Context(), name, value)
	require.NoError(t, err)
	for p.Next() {
		var l labels.ScratchBuilder
		var metas []chunks.Meta
		require.NoError(t, r.Series(p.At(), &l, &metas))
		places[l.Labels().Get("__name__")] = metas[:1]
	}
	require.NoError(t, r.Close())
	require.NoError(t, block.Close())
	w, err := index.NewWriter(t.Context(), filepath.Join(dir, "index"))
	require.NoError(t, err)
	var symbols []string
	for _, ls := range []labels.Labels{a, b} {
		ls.Range(func(l labels.Label) { symbols = append(symbols, l.Name, l.Value) })
	}
	slices.Sort(symbols)
	for _, s := range slices.Compact(symbols) {
		require.NoError(t, w.AddSymbol(s))
	}
	for i, ls := range []labels.Labels{a, b} {
		m := places[string(rune('a'+i))][0]
		m.MinTime, m.MaxTime = 0, claimed
		require.NoError(t, w.AddSeries(storage.SeriesRef(i+1), ls, m))
	}
	require.NoError(t, w.Close())
}

// TestTimesOutsideOfTheIndex holds that a chunk is corrupt whose samples are not where the index
// says: no range would have them. Floats and histograms take different ways.
func TestTimesOutsideOfTheIndex(t *testing.T) {
	for i, name := range []string{"a", "b"} {
		dir := promblocktest.Write(t, t.TempDir(), 0, 300_000, history())
		indexed(t, dir, 1000, labels.FromStrings("__name__", "a"), labels.FromStrings("__name__", "b"))
		skipped := 0
		floats, hists, _, err := read(t, dir, promblock.Options{Skip: func(*promblock.CorruptError) bool { skipped++; return true }}, 0, 2000)
		require.NoError(t, err)
		require.Equal(t, 2, skipped)
		require.Empty(t, floats[name].TS)
		require.Empty(t, hists[name])
		_, _, _, err = read(t, dir, promblock.Options{Skip: func(c *promblock.CorruptError) bool { return c.Series.Get("__name__") != name }}, 0, 2000)
		var corrupt *promblock.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.ErrorContains(t, err, "it has a sample at 2000 ms, outside of its times in the index", "series %d", i)
	}
}

// TestHistogramsOfEqualTimes holds that of two histograms of one series and time the last one stays,
// also where there is no other sample. An external label makes the series one.
func TestHistogramsOfEqualTimes(t *testing.T) {
	var all []promblocktest.Series
	for i, replica := range []string{"x", "y"} {
		h := &histogram.Histogram{Schema: 1, Count: uint64(i), ZeroCount: uint64(i)}
		all = append(all, promblocktest.Series{Labels: labels.FromStrings("__name__", "a", "r", replica), Samples: []promblocktest.Sample{{Time: 1000, H: h}}})
	}
	dir := promblocktest.Write(t, t.TempDir(), 0, 2000, all)
	block, err := promblock.Open(dir, promblock.Options{External: []series.Label{{Name: "r", Value: "z"}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, block.Close()) }()
	rows, err := block.Scan(t.Context(), 0, 2000, func([]series.Label, int64) (series.Ref, bool, error) { return 0, true, nil })
	require.NoError(t, err)
	require.Equal(t, 1, rows.Len())
	var run live.Run
	hists, err := rows.Read(0, &run, nil)
	require.NoError(t, err)
	require.Len(t, hists, 1)
	require.Equal(t, uint64(1), hists[0].H.Count)
}

// TestLabelTwice holds that a series with a label twice, which the store cannot have, is an error.
func TestLabelTwice(t *testing.T) {
	var b labels.ScratchBuilder
	b.Add("__name__", "a")
	b.Add("job", "x")
	b.Add("job", "y")
	dir := promblocktest.Write(t, t.TempDir(), 0, 300_000, history())
	w, err := index.NewWriter(t.Context(), filepath.Join(dir, "index")) // upstream's head refuses it
	require.NoError(t, err)
	for _, symbol := range []string{"__name__", "a", "job", "x", "y"} {
		require.NoError(t, w.AddSymbol(symbol))
	}
	require.NoError(t, w.AddSeries(1, b.Labels(), chunks.Meta{Ref: 8, MaxTime: 1000}))
	require.NoError(t, w.AddSeries(2, labels.FromStrings("__name__", "x"), chunks.Meta{Ref: 8, MaxTime: 1000})) // as many series as uses of job
	require.NoError(t, w.Close())
	block, err := promblock.Open(dir, promblock.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, block.Close()) }()
	_, err = block.Scan(t.Context(), 0, 300_000, func([]series.Label, int64) (series.Ref, bool, error) { return 0, false, nil })
	require.ErrorIs(t, err, promblock.ErrFormat)
	require.ErrorContains(t, err, "it has label job twice")
}

// TestTombstonesInOrder holds that a block is refused at once whose tombstones upstream would sort
// for hours, and that one with any number of them in order is read.
func TestTombstonesInOrder(t *testing.T) {
	const n = 1 << 18
	dir := promblocktest.Write(t, t.TempDir(), 0, 300_000, history())
	ascending := func(i int) (series uint64, from, to int64) { return 1, int64(1_000_000 + 3*i), int64(1_000_001 + 3*i) }
	for name, tc := range map[string]struct {
		interval func(i int) (series uint64, from, to int64)
		want     string
	}{
		"ascending": {interval: ascending},
		"of series in any order": {interval: func(i int) (uint64, int64, int64) {
			_, from, to := ascending(i)
			return uint64(n-i) % 5, from, to
		}},
		"descending": {func(i int) (uint64, int64, int64) { return ascending(n - i) }, "tombstones of series 1 are not in the order of time"},
		"descending, of two series": {func(i int) (uint64, int64, int64) {
			_, from, to := ascending(n - i)
			return uint64(1 + i%2), from, to
		}, "tombstones of series 1 are not in the order of time"},
		"touching":                   {func(i int) (uint64, int64, int64) { return 7, int64(2 * i), int64(2*i + 1) }, "tombstones of series 7"},
		"without a beginning":        {func(i int) (uint64, int64, int64) { return 7, math.MinInt64, int64(i) }, "tombstones of series 7"},
		"that end before they begin": {func(i int) (uint64, int64, int64) { return 7, int64(n - i), -1 }, "tombstones of series 7"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := append(binary.BigEndian.AppendUint32(nil, tombstones.MagicTombstone), 1)
			for i := range n {
				series, from, to := tc.interval(i)
				raw = binary.AppendVarint(binary.AppendVarint(binary.AppendUvarint(raw, series), from), to)
			}
			raw = binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw[5:], castagnoli))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tombstones"), raw, 0o600))
			block, err := promblock.Open(dir, promblock.Options{})
			if tc.want == "" {
				require.NoError(t, err)
				require.NoError(t, block.Close())
				return
			}
			require.ErrorIs(t, err, promblock.ErrFormat)
			require.ErrorContains(t, err, tc.want)
		})
	}
}
