package rollup_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/rollup"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGoldenFiles pins the bytes of small files, and their content.
func TestGoldenFiles(t *testing.T) {
	files := memFiles{}
	w, err := rollup.NewWriter(files, nil)
	require.NoError(t, err)
	series := func(n int, interval int64) (ts []int64, v []float64) {
		for i := range n {
			ts, v = append(ts, 1+int64(i)*interval), append(v, float64(i)/2)
		}
		return ts, v
	}
	both, v := series(1024, 9_000) // 33 or 34 samples in each bucket of 5 minutes
	require.NoError(t, w.Append("a", 1<<63+1, both, v, both))
	hour, v := series(1024, 60_000)
	require.NoError(t, w.Append("a", 2, hour, v, nil))
	few, v := series(1023, 1)
	require.NoError(t, w.Append("b", 3, few, v, nil))
	require.NoError(t, w.Append("b", 4, nil, nil, nil))
	_, err = w.Close()
	require.NoError(t, err)
	for name, f := range files {
		path := filepath.Join("testdata", name[:len(name)-len(".parquet")]+"-v4.parquet")
		if *update {
			require.NoError(t, os.WriteFile(path, f.Bytes(), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, f.Bytes()), "%s differs: a change of the format wants a new Version, another change of bytes -update", path)
	}
	const m = 300_000
	a := rollup.Record{Metric: "a", SeriesID: 1<<63 + 1}
	first, second := a, a
	first.Row = rollup.Row{Flags: rollup.FlagFraction | rollup.FlagStart, Count: 34, FirstT: 1, LastT: 297_001, Changes: 33, Last: 16.5, Max: 16.5, Sum: 280.5}
	second.Row = rollup.Row{Bucket: m, Flags: rollup.FlagFraction | rollup.FlagStart, Count: 33, FirstT: 306_001, LastT: 594_001, Changes: 32, First: 17, Last: 33, Min: 17, Max: 33, Sum: 825}
	minutes := files.read(t, "rollup-5m.parquet")
	require.Len(t, minutes, 31)
	require.Equal(t, []rollup.Record{first, second}, minutes[:2])
	require.Equal(t, []uint64{1<<63 + 1, 2}, seriesOf(files.read(t, "rollup-1h.parquet")))
}

// seriesOf returns the series that have rows.
func seriesOf(rows []rollup.Record) (ids []uint64) {
	for _, r := range rows {
		ids = append(ids, r.SeriesID)
	}
	return slices.Compact(ids)
}

// golden returns a golden file as the file of that name.
func golden(t *testing.T, file, name string) memFiles {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	f := &memFile{closed: true}
	f.Write(b)
	return memFiles{name: f}
}

// TestVersion3 reads files of version 3, whose figures are never differences: they have the rows of
// the present version.
func TestVersion3(t *testing.T) {
	for _, name := range []string{"rollup-5m", "rollup-1h"} {
		rows := golden(t, name+"-v3.parquet", name+".parquet").read(t, name+".parquet")
		require.NotEmpty(t, rows)
		require.Equal(t, golden(t, name+"-v4.parquet", name+".parquet").read(t, name+".parquet"), rows)
	}
}

// TestVersion2 reads files of version 2, which have rows of series with few samples.
func TestVersion2(t *testing.T) {
	const m = 300_000
	a := rollup.Record{Metric: "a", SeriesID: 1<<63 + 1}
	first, second := a, a
	first.Row = rollup.Row{Flags: rollup.FlagFraction | rollup.FlagStart, Count: 34, FirstT: 1, LastT: 297_001, Changes: 33, Last: 16.5, Max: 16.5, Sum: 280.5}
	second.Row = rollup.Row{Bucket: m, Flags: rollup.FlagFraction | rollup.FlagStart, Count: 30, FirstT: 306_001, LastT: 567_001, Changes: 29, First: 17, Last: 31.5, Min: 17, Max: 31.5, Sum: 727.5}
	require.Equal(t, []rollup.Record{first, second}, golden(t, "rollup-5m-v2.parquet", "rollup-5m.parquet").read(t, "rollup-5m.parquet"))
	require.Equal(t, []uint64{1<<63 + 1, 2}, seriesOf(golden(t, "rollup-1h-v2.parquet", "rollup-1h.parquet").read(t, "rollup-1h.parquet")))
}

// TestVersion1 reads a file of version 1, which has rows of every series.
func TestVersion1(t *testing.T) {
	files := golden(t, "rollup-5m-v1.parquet", "rollup-5m.parquet")
	const m, h = 300_000, 3_600_000
	require.Equal(t, []rollup.Record{
		{Metric: "a", SeriesID: 1<<63 + 1, Row: rollup.Row{Bucket: -m, Count: 1, First: 9, Last: 9, Min: 9, Max: 9, Sum: 9}},
		{Metric: "a", SeriesID: 1<<63 + 1, Row: rollup.Row{
			Bucket: 0, Flags: rollup.FlagFraction, Count: 5, FirstT: 1, LastT: m, Changes: 4, Resets: 2,
			First: 1, Last: 3, Min: 0.5, Max: 4, Sum: 10.5, ResetSum: 6,
		}},
		{Metric: "a", SeriesID: 1<<63 + 1, Row: rollup.Row{Bucket: m, Stale: 1, StaleT: m + 1}},
		{Metric: "a", SeriesID: 1<<63 + 1, Row: rollup.Row{Bucket: h - m, Count: 1, FirstT: h, LastT: h, First: 7, Last: 7, Min: 7, Max: 7, Sum: 7}},
		{Metric: "a", SeriesID: 1<<63 + 1, Row: rollup.Row{
			Bucket: h, Count: 1, FirstT: h + 1, LastT: h + 1, First: 7, Last: 7, Min: 7, Max: 7, Sum: 7, Stale: 1, StaleT: 3_700_000,
		}},
		{Metric: "b", SeriesID: 2, Row: rollup.Row{Bucket: -m, Count: 1, First: 9, Last: 9, Min: 9, Max: 9, Sum: 9}},
		{Metric: "b", SeriesID: 2, Row: rollup.Row{Bucket: 0, Flags: rollup.FlagStart, Count: 1, FirstT: 1, LastT: 1, First: 1, Last: 1, Min: 1, Max: 1, Sum: 1}},
	}, files.read(t, "rollup-5m.parquet"))
}
