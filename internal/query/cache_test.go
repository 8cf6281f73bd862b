package query_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// fill writes n segments of one series each: {i="a"} at t=1, {i="b"} at t=2, ...
func fill(l *laketest.Lake, tenantID string, n int) {
	for i := range n {
		l.Write(tenantID, []segment.Row{{Labels: laketest.Metric("m", "i", string(rune('a'+i))), Floats: []segment.Float{{T: int64(i + 1), V: float64(i)}}}})
	}
}

func cached(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "segments", "*"))
	require.NoError(t, err)
	return files
}

func TestRemoteStoreIsCached(t *testing.T) {
	remote := &laketest.Remote{Store: laketest.NewDir(t)}
	dir := filepath.Join(t.TempDir(), "cache")
	l := laketest.New(t, remote, query.Settings{CacheDir: dir})
	fill(l, tenant.Default, 5)
	require.NoDirExists(t, dir, "made at first use")
	for range 3 {
		require.Len(t, query1(t, l, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "m")), 5)
		require.Equal(t, int64(5), remote.Gets.Load(), "one request per small segment, ever")
	}
	require.Len(t, cached(t, dir), 5)
	require.NoError(t, l.Stage.Close())
	require.Empty(t, cached(t, dir))
}

func TestCacheBudget(t *testing.T) {
	remote := &laketest.Remote{Store: laketest.NewDir(t)}
	dir := t.TempDir()
	l := laketest.New(t, remote, query.Settings{CacheDir: dir, CacheBytes: 1, FooterCacheBytes: 1})
	fill(l, tenant.Default, 5)
	for range 2 { // over budget while it runs, and still right
		require.Len(t, query1(t, l, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "m")), 5)
	}
	require.Len(t, query1(t, l, 1, 1, nil, laketest.Equal(model.MetricNameLabel, "m")), 1)
	require.LessOrEqual(t, len(cached(t, dir)), 5)
	require.Greater(t, remote.Gets.Load(), int64(5))
}

// TestLargeRemoteSegment: its footer is read first, and the rest only if the time range needs it.
func TestLargeRemoteSegment(t *testing.T) {
	remote := &laketest.Remote{Store: laketest.NewDir(t)}
	l := laketest.New(t, remote, query.Settings{})
	rng := rand.New(rand.NewPCG(1, 1))
	r := segment.Row{Labels: laketest.Metric("big")}
	for i := range 400_000 {
		r.Floats = append(r.Floats, segment.Float{T: int64(i), V: rng.Float64()})
	}
	l.Write(tenant.Default, []segment.Row{r})
	require.Empty(t, query1(t, l, 500_000, 600_000, nil, laketest.Equal(model.MetricNameLabel, "big")))
	require.Equal(t, int64(1), remote.Gets.Load())
	require.Len(t, query1(t, l, 5, 10, nil, laketest.Equal(model.MetricNameLabel, "big")), 1)
	require.Equal(t, int64(3), remote.Gets.Load(), "two for 3.2 MB")
}

// TestPatternInPath: SQL interprets some characters in paths as patterns; a tenant with such a name
// sees only its own data.
func TestPatternInPath(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	ids := []string{"a*b", "axb", "a'b"}
	for _, id := range ids {
		l.Seq = 0 // the same object names
		l.Write(id, []segment.Row{{Labels: laketest.Metric("m", "of", id), Floats: []segment.Float{{T: 1, V: 1}}}})
	}
	for _, id := range ids {
		q, err := l.Querier(0, 10)
		require.NoError(t, err)
		require.Equal(t, []string{`{__name__="m", of="` + id + `"}: 1=1`}, text(t, q.Select(tenant.With(t.Context(), id), true, nil, laketest.Equal(model.MetricNameLabel, "m"))))
	}
}

func TestCacheDirBelongsToOneProcess(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "segments"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "segments", "torn"), []byte("x"), 0o644))
	store := &laketest.Remote{Store: laketest.NewDir(t)}
	a, b := laketest.New(t, store, query.Settings{CacheDir: dir}), laketest.New(t, store, query.Settings{CacheDir: dir})
	fill(a, tenant.Default, 1)
	require.Len(t, query1(t, a, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "m")), 1)
	require.Len(t, cached(t, dir), 1, "what a crash left behind is gone")
	q, err := b.Querier(0, 100)
	require.NoError(t, err)
	set := q.Select(t.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "m"))
	require.False(t, set.Next())
	require.ErrorContains(t, set.Err(), "another process")
	require.NoError(t, a.Stage.Close())
	require.Len(t, query1(t, b, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "m")), 1)
}

// TestKilledProcess: all files of any kind that a killed process left in a directory are deleted
// before the next process there caches anything, and do not count towards its limits.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lock", "segments/fetch-123", "segments/0123.parquet", "segments/0123-7.part", "spill/duckdb_temp_block-1.block"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), make([]byte, 1<<20), 0o644))
	}
	l := laketest.New(t, &laketest.Remote{Store: laketest.NewDir(t)}, query.Settings{CacheDir: dir, CacheBytes: 64 << 10})
	fill(l, tenant.Default, 3)
	require.Len(t, query1(t, l, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "m")), 3)
	files := left(t, dir)
	require.Len(t, files, 3)
	var size int64
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(t, err)
		size += info.Size()
	}
	require.Equal(t, float64(size), l.Counted("promlake_query_cache_bytes"))
}

// TestSmallDisk: many queries at once that need more than the disk may have are right all the same.
func TestSmallDisk(t *testing.T) {
	dir, cache := laketest.NewDir(t), t.TempDir()
	writeColdBlock(t, laketest.New(t, dir, query.Settings{}), 4, 100, 3000)
	const limit = 100_000
	l := laketest.New(t, &laketest.Remote{Store: dir}, query.Settings{CacheDir: cache, CacheBytes: limit, IndexCacheBytes: 1, MinPushedSamples: -1, MaxConcurrency: 4})
	plain := laketest.New(t, dir, query.Settings{})
	var wg sync.WaitGroup
	for i := range 8 {
		text := fmt.Sprintf(`sum by (g) (rate(m{job="job-%02d"}[10m]))`, i%4)
		want := askDay(t, plain.Stage, text)
		wg.Go(func() {
			if res := execDay(t.Context(), t, l.Stage, text); res.Err != nil || res.String() != want {
				t.Errorf("%s: %v", text, res.Err)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, l.Counted("promlake_query_cache_bytes"), float64(limit))
}

func TestBrokenSegmentIsNamed(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.Rewrite = func(b []byte) []byte { return b[:len(b)-4] }
	fill(l, tenant.Default, 1)
	q, err := l.Querier(0, 100)
	require.NoError(t, err)
	set := q.Select(t.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "m"))
	require.False(t, set.Next())
	require.ErrorIs(t, set.Err(), segment.ErrFormat)
	require.ErrorContains(t, set.Err(), "segments/19700101T0000Z/")
}

func TestSettings(t *testing.T) {
	s, err := query.Settings{}.WithDefaults()
	require.NoError(t, err)
	require.Positive(t, s.Threads)
	again, err := s.WithDefaults()
	require.NoError(t, err)
	require.Equal(t, s, again)
	_, err = query.Settings{MaxSamples: -1}.WithDefaults()
	require.ErrorContains(t, err, "query settings: query.max-samples: want at least 1, got -1")
	_, err = query.Settings{CacheDir: "/x*y"}.WithDefaults()
	require.ErrorContains(t, err, "pattern")
}
