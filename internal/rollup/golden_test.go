package rollup_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/rollup"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGoldenFiles pins the bytes of small files, and their content.
func TestGoldenFiles(t *testing.T) {
	files := memFiles{}
	w, err := rollup.NewWriter(files)
	require.NoError(t, err)
	ts := []int64{0, 1, 60_000, 120_000, 180_000, 300_000, 300_001, 3_600_000, 3_600_001, 3_700_000}
	v := []float64{9, 1, 4, 2, 0.5, 3, stale, 7, 7, stale}
	require.NoError(t, w.Append("a", 1<<63+1, ts, v, nil))
	require.NoError(t, w.Append("b", 2, ts[:2], v[:2], ts[:2]))
	_, err = w.Close()
	require.NoError(t, err)
	for name, f := range files {
		golden := filepath.Join("testdata", name[:len(name)-len(".parquet")]+"-v1.parquet")
		if *update {
			require.NoError(t, os.WriteFile(golden, f.Bytes(), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, f.Bytes()), "%s differs: a change of the format wants a new Version, another change of bytes -update", golden)
	}
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
