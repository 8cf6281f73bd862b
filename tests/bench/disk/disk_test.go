package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLevelsShareTheProcessorTime(t *testing.T) {
	c := &Compaction{CPU: 8 * time.Second, Levels: map[string]*Level{}}
	log := `{"msg":"compacted","job":"merge 2h 20260303T0000Z of 9 segments","read":100,"took":1000000000}
{"msg":"compacted","job":"merge 2h 20260303T0200Z of 1 segment","read":50,"took":1000000000}
{"msg":"compacted","job":"merge 24h 20260303T0000Z of 2 blocks","read":150,"took":2000000000}
{"msg":"compacted","job":"expire of 1 segment","took":5}
{"msg":"something else"}
`
	require.NoError(t, c.readLog(strings.NewReader(log)))
	require.Equal(t, map[string]*Level{"2h": {Jobs: 2, Read: 150, Took: 2 * time.Second}, "24h": {Jobs: 1, Read: 150, Took: 2 * time.Second}}, c.Levels)
	require.InDelta(t, 150.0/4, c.PerCore("2h"), 1e-9)
	require.Equal(t, int64(300), c.Read())
	require.Zero(t, c.PerCore("12h"))
	require.Error(t, c.readLog(strings.NewReader("no JSON")))
}

func TestKinds(t *testing.T) {
	for file, kind := range map[string]string{
		"series.parquet": "series", "samples-0000.parquet": "samples", "samples-0001.parquet": "samples", "meta.json": "meta.json",
		"rollup-5m.parquet": "rollup-5m", "rollup-1h.parquet": "rollup-1h", "histograms-0000.parquet": "histograms",
	} {
		require.Equal(t, kind, blockKind(file), file)
	}
	for file, kind := range map[string]string{
		"data/small/2026_03/17_1_x/values.bin": "samples: values.bin", "indexdb/1/2/items.bin": "index", "cache/rollupResult": "", "flock.lock": "",
	} {
		require.Equal(t, kind, victoriaKind(filepath.FromSlash(file)), file)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"series.parquet": 5, "samples-0000.parquet": 7, "samples-0001.parquet": 1, "rollup-5m.parquet": 3} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o644))
	}
	f := Files{}
	require.NoError(t, f.add(dir, blockKind))
	require.Equal(t, Files{"series": 5, "samples": 8, "rollup-5m": 3}, f)
	require.Equal(t, []int64{16, 3}, []int64{f.Bytes(), f.Rollups()})
	require.ErrorContains(t, f.add(filepath.Join(dir, "absent"), blockKind), "absent")
}
