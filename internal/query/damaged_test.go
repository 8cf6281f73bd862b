package query_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/tenant"
)

// TestDamagedCopyIsFetchedAgain flips a bit of every file in the cache directory: what is read of them next comes from the store again.
func TestDamagedCopyIsFetchedAgain(t *testing.T) {
	remote := &remoteStore{Store: newDirStore(t)}
	dir := filepath.Join(t.TempDir(), "cache")
	l := newLake(t, remote, query.Settings{CacheDir: dir, FooterCacheBytes: 1, IndexCacheBytes: 1}) // nothing decoded is kept
	fill(l, tenant.Default, 5)
	read := func() { require.Len(t, query1(t, l, 0, 100, nil, equal(model.MetricNameLabel, "m")), 5) }
	read()
	fetched := remote.gets.Load()
	read()
	require.Equal(t, fetched, remote.gets.Load(), "everything is cached")
	for _, name := range cached(t, dir) {
		path := filepath.Join(dir, name)
		if filepath.IsAbs(name) {
			path = name
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		b[100] ^= 1
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	read()
	require.Greater(t, remote.gets.Load(), fetched)
	require.Equal(t, 5.0, l.counted("promlake_query_rereads_total"))
	require.Zero(t, l.counted("promlake_query_damaged_objects_total"))
}
