package promblock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/senders/promblock"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// history has two series of which one is a histogram.
func history() []promblocktest.Series {
	a := promblocktest.Series{Labels: labels.FromStrings("__name__", "a", "job", "x")}
	b := promblocktest.Series{Labels: labels.FromStrings("__name__", "b", "job", "x")}
	for i := range int64(300) {
		a.Samples = append(a.Samples, promblocktest.Sample{Time: 1000 * i, V: float64(i)})
		b.Samples = append(b.Samples, promblocktest.Sample{Time: 1000 * i, H: &histogram.Histogram{Schema: 1, Count: uint64(i), ZeroCount: uint64(i), Sum: 1}})
	}
	return []promblocktest.Series{a, b}
}

// read returns the samples of a range by the metric's name.
func read(t *testing.T, dir string, o promblock.Options, from, to int64) (map[string]live.Run, map[string][]segment.Hist, [][]series.Label, error) {
	t.Helper()
	b, err := promblock.Open(dir, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	var sets [][]series.Label
	rows, err := b.Scan(t.Context(), from, to, func(lset []series.Label, bytes int64) (series.Ref, bool, error) {
		require.Positive(t, bytes)
		sets = append(sets, append([]series.Label(nil), lset...))
		return series.Ref(len(sets) - 1), true, nil
	})
	require.NoError(t, err)
	floats, hists := map[string]live.Run{}, map[string][]segment.Hist{}
	for i := range rows.Len() {
		var run live.Run
		h, err := rows.Read(i, &run, nil)
		if err != nil {
			return nil, nil, nil, err
		}
		name := sets[rows.Ref(i)][0].Value
		floats[name], hists[name] = run, h
	}
	return floats, hists, sets, nil
}

func TestRead(t *testing.T) {
	dir := promblocktest.Write(t, t.TempDir(), 0, 300_000, history())
	floats, hists, _, err := read(t, dir, promblock.Options{}, 100_000, 200_000)
	require.NoError(t, err)
	require.Len(t, floats["a"].TS, 100)
	require.Equal(t, int64(100_000), floats["a"].TS[0])
	require.Equal(t, float64(199), floats["a"].V[99])
	require.Empty(t, floats["a"].ST)
	require.Empty(t, floats["b"].TS)
	require.Len(t, hists["b"], 100)
	require.Equal(t, uint64(150), hists["b"][50].H.Count)
	floats, _, _, err = read(t, dir, promblock.Options{}, 300_000, 400_000)
	require.NoError(t, err)
	require.Empty(t, floats, "no chunk is in the range")
}

func TestExternalLabels(t *testing.T) {
	m, err := promblock.ReadMeta([]byte(`{"ulid":"01M830A8Q5FDT227PX59J0YKC3","minTime":1,"maxTime":2,"version":1,"thanos":{"labels":{"replica":"a","__shard__":"1","job":"y"}}}`))
	require.NoError(t, err)
	external := m.External()
	require.Equal(t, []series.Label{{Name: "job", Value: "y"}, {Name: "replica", Value: "a"}}, external)
	dir := promblocktest.Write(t, t.TempDir(), 0, 300_000, history())
	_, _, sets, err := read(t, dir, promblock.Options{External: external}, 0, 300_000)
	require.NoError(t, err)
	require.Equal(t, []series.Label{{Name: "__name__", Value: "a"}, {Name: "job", Value: "y"}, {Name: "replica", Value: "a"}}, sets[0])
}

// TestCorruptChunk holds that a damaged chunk is named by block, series and offset, and that its
// samples alone are left out on request.
func TestCorruptChunk(t *testing.T) {
	dir := promblocktest.Write(t, t.TempDir(), 0, 300_000, history())
	file := filepath.Join(dir, "chunks", "000001")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	raw[40] ^= 0xff // in the first chunk, which is of series a
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	_, _, _, err = read(t, dir, promblock.Options{}, 0, 300_000)
	var corrupt *promblock.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, filepath.Base(dir), corrupt.Block.String())
	require.Equal(t, `{__name__="a", job="x"}`, corrupt.Series.String())
	require.Equal(t, 8, corrupt.Offset)
	require.ErrorContains(t, err, "chunks/000001 at offset 8")
	require.ErrorContains(t, err, "checksum")

	n := 0
	floats, hists, _, err := read(t, dir, promblock.Options{Skip: func(*promblock.CorruptError) bool { n++; return true }}, 0, 300_000)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Less(t, len(floats["a"].TS), 300)
	require.Len(t, hists["b"], 300)
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	good := promblocktest.Write(t, dir, 0, 300_000, history())
	marked := promblocktest.Write(t, dir, 0, 300_000, history())
	require.NoError(t, os.WriteFile(filepath.Join(marked, promblock.DeletionMark), []byte("{}"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "wal"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ulid.Make().String()), 0o700), "a block whose upload is not complete")
	found, err := promblock.Find(dir)
	require.NoError(t, err)
	require.Len(t, found, 2)
	for _, f := range found {
		require.Equal(t, f.Dir == marked, f.Skipped != "")
		require.Positive(t, f.Bytes)
		require.Equal(t, uint64(600), f.Meta.Stats.NumSamples)
	}
	one, err := promblock.Find(good)
	require.NoError(t, err)
	require.Len(t, one, 1)
	require.NoError(t, os.WriteFile(filepath.Join(good, promblock.MetaFile), []byte(`{"version":7}`), 0o600))
	_, err = promblock.Find(dir)
	require.ErrorIs(t, err, promblock.ErrFormat)
	require.ErrorContains(t, err, "version 7, want 1")
	_, err = promblock.Open(good, promblock.Options{})
	require.ErrorIs(t, err, promblock.ErrFormat)
}

func TestSkip(t *testing.T) {
	for _, text := range []string{
		`{"ulid":"01M830A8Q5FDT227PX59J0YKC3","version":1,"thanos":{"downsample":{"resolution":300000}}}`,
		`{"ulid":"01M830A8Q5FDT227PX59J0YKC3","version":1,"compaction":{"deletable":true}}`,
	} {
		m, err := promblock.ReadMeta([]byte(text))
		require.NoError(t, err)
		require.NotEmpty(t, m.Skip())
	}
	for _, text := range []string{``, `{}`, `{"version":1}`, `{"ulid":"01M830A8Q5FDT227PX59J0YKC3","version":1,"minTime":2,"maxTime":1,"stats":{"numSamples":1}}`} {
		_, err := promblock.ReadMeta([]byte(text))
		require.ErrorIs(t, err, promblock.ErrFormat, text)
	}
}

// TestSpoolHasNoName: a process that is killed leaves no file.
func TestSpoolHasNoName(t *testing.T) {
	dir := t.TempDir()
	s, err := promblock.NewSpool(dir)
	require.NoError(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, s.Close())
}
