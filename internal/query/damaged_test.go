package query_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestDamagedCopyIsFetchedAgain flips a bit of every file in the cache directory: what is read of
// them next comes from the store again.
func TestDamagedCopyIsFetchedAgain(t *testing.T) {
	remote := &laketest.Remote{Store: laketest.NewDir(t)}
	dir := filepath.Join(t.TempDir(), "cache")
	l := laketest.New(t, remote, query.Settings{CacheDir: dir, FooterCacheBytes: 1, IndexCacheBytes: 1}) // nothing decoded is kept
	fill(l, tenant.Default, 5)
	read := func() { require.Len(t, query1(t, l, 0, 100, nil, laketest.Equal(model.MetricNameLabel, "m")), 5) }
	read()
	fetched := remote.Gets.Load()
	read()
	require.Equal(t, fetched, remote.Gets.Load(), "everything is cached")
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
	require.Greater(t, remote.Gets.Load(), fetched)
	require.Equal(t, 5.0, l.Counted("promlake_query_rereads_total"))
	require.Zero(t, l.Counted("promlake_query_damaged_objects_total"))
}

// damageColumn flips a bit at the end of a column of the first row group of a block's first sample
// file, and returns the file's path.
func damageColumn(t *testing.T, store *laketest.Dir, b catalog.Block, leaf int) (path string) {
	t.Helper()
	dir := store.LocalPath(b.Key(tenant.Default).Prefix())
	raw, err := os.ReadFile(filepath.Join(dir, block.MetaFile))
	require.NoError(t, err)
	m, err := block.ReadMeta(raw)
	require.NoError(t, err)
	i := slices.IndexFunc(m.Files, func(f block.File) bool { return f.Name == block.SamplesFile(0) })
	chunk := m.Files[i].RowGroups[0].Columns[leaf]
	path = filepath.Join(dir, block.SamplesFile(0))
	raw, err = os.ReadFile(path)
	require.NoError(t, err)
	raw[chunk[0]+chunk[1]-1] ^= 1
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	return path
}

// TestDamagedBlock flips a bit of the times in a block's sample file, which only a read of samples
// meets.
func TestDamagedBlock(t *testing.T) {
	for _, partial := range []bool{false, true} {
		store := laketest.NewDir(t)
		settings := query.Settings{PartialResponse: partial}
		l := laketest.New(t, store, settings)
		row := func(job string, at int64) []segment.Row {
			return []segment.Row{{Labels: laketest.Metric("m", "job", job), Floats: []segment.Float{{T: at, V: 1}, {T: at + 1000, V: 2}}}}
		}
		b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, row("block", 1000))[0]
		l.Write(tenant.Default, row("segment", 1000))
		read := func(l *laketest.Lake) (jobs []string, set storage.SeriesSet) {
			q, err := l.Querier(0, 10_000)
			require.NoError(t, err)
			set = q.Select(t.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "m"))
			for set.Next() {
				jobs = append(jobs, set.At().Labels().Get("job"))
			}
			return jobs, set
		}
		jobs, set := read(l)
		require.NoError(t, set.Err())
		require.Equal(t, []string{"block", "segment"}, jobs)

		path := damageColumn(t, store, b, 2)

		jobs, set = read(laketest.New(t, store, settings)) // the other one keeps the samples
		prefix, err := filepath.Rel(store.Path, filepath.Dir(path))
		require.NoError(t, err)
		if !partial {
			var damaged *query.DamagedError
			require.ErrorAs(t, set.Err(), &damaged)
			require.ErrorIs(t, set.Err(), checksum.ErrDamaged)
			require.Equal(t, filepath.ToSlash(prefix)+"/", damaged.Object)
			require.Equal(t, []int64{1000, 2000}, []int64{damaged.MinT, damaged.MaxT})
			continue
		}
		require.NoError(t, set.Err())
		require.Equal(t, []string{"segment"}, jobs)
		require.Len(t, set.Warnings(), 1)
		require.ErrorContains(t, set.Warnings().AsErrors()[0], filepath.ToSlash(prefix))
	}
}

// TestLaterVersion: an object that only a later program understands is an error, also where damaged
// objects are left out of answers.
func TestLaterVersion(t *testing.T) {
	store := laketest.NewDir(t)
	l := laketest.New(t, store, query.Settings{PartialResponse: true})
	b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, []segment.Row{{Labels: laketest.Metric("m"), Floats: []segment.Float{{T: 1000, V: 1}}}})[0]
	path := store.LocalPath(b.Key(tenant.Default).File(block.MetaFile))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	raw, err = checksum.Append(append(bytes.Replace(raw[:bytes.LastIndexByte(raw, ',')], []byte(`"version":2`), []byte(`"version":7`), 1), '}'))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	q, err := l.Querier(0, 10_000)
	require.NoError(t, err)
	set := q.Select(t.Context(), true, nil, laketest.Equal(model.MetricNameLabel, "m"))
	for set.Next() {
		require.Fail(t, "there is a series")
	}
	require.ErrorIs(t, set.Err(), checksum.ErrUnknownVersion)
	require.ErrorContains(t, set.Err(), b.Key(tenant.Default).Prefix())
	require.Empty(t, set.Warnings())
}
