package publish

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/iceberg"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestPublish: a publication shows the blocks, day by day; the next one writes what changed, and
// nothing if nothing did.
func TestPublish(t *testing.T) {
	l := newLake(t)
	r := l.publish()
	require.Equal(t, Report{Tenant: tenant, Tables: []TableReport{{Name: "series"}, {Name: "samples"}}}, r, "no blocks, no tables")

	l.add(0, key.L24h, up("a"), up("b"))
	l.add(1, key.L24h, up("a"))
	l.add(1, key.Part, up("c"))
	r = l.publish()
	require.Equal(t, 2, r.Blocks)
	require.Equal(t, 1, r.Waiting)
	require.Equal(t, TableReport{Name: "samples", Metadata: uri + "v1/t/iceberg/samples/metadata/v1.metadata.json", Version: 1, Files: 2, Rows: 6, Changed: true}, r.Tables[1])
	require.Equal(t, TableReport{Name: "series", Metadata: uri + "v1/t/iceberg/series/metadata/v1.metadata.json", Version: 1, Files: 2, Rows: 3, Changed: true}, r.Tables[0])
	first := l.read("samples")
	require.Len(t, first.manifests, 2)
	require.Equal(t, []iceberg.PartitionRange{{Lower: iceberg.LongBound(start.UnixMilli()), Upper: iceberg.LongBound(start.UnixMilli())}}, first.manifests[0].Partitions)

	l.puts = nil
	r = l.publish()
	require.False(t, r.Tables[0].Changed || r.Tables[1].Changed)
	require.Empty(t, l.puts)

	l.now = l.now.Add(time.Minute)
	l.add(2, key.L24h, up("a"), labels.FromStrings("__name__", "up", "zone", "z", "A.b", "c"))
	l.puts = nil
	r = l.publish()
	require.Equal(t, int64(3), r.Tables[1].Files)
	second := l.read("samples")
	require.Equal(t, first.manifests, second.manifests[:2], "manifests of other days are reused")
	require.Len(t, slices.DeleteFunc(l.puts, func(k string) bool { return !strings.Contains(k, "/samples/") }), 4, "manifest, list, metadata, hint")
	require.Equal(t, "append", second.meta.Snapshot().Summary["operation"])

	l.now = l.now.Add(time.Minute)
	l.clear()
	l.add(0, key.L24h, up("a"))
	l.publish()
	third := l.read("samples")
	require.Len(t, third.manifests, 1)
	require.Equal(t, "overwrite", third.meta.Snapshot().Summary["operation"])
	require.Len(t, third.meta.Snapshots, 3)
	require.Equal(t, first.meta.TableUUID, third.meta.TableUUID)
}

// TestBlocksOfEarlierVersions: blocks without the columns of the tables are left out, and counted by
// each publication until they are replaced.
func TestBlocksOfEarlierVersions(t *testing.T) {
	l := newLake(t)
	l.addOld(0)
	l.add(1, key.L24h, up("a"))
	for n := range 3 {
		if n == 2 {
			l.add(2, key.L24h, up("a"))
		}
		r := l.publish()
		require.Equal(t, 1, r.Old)
		require.Equal(t, 1+n/2, r.Blocks)
		require.EqualValues(t, 1+n/2, r.Tables[1].Files)
	}
	l.clear()
	l.add(0, key.L24h, up("a"))
	require.Zero(t, l.publish().Old)
}

// TestColumns: a label has a column from the block on in which it first appears, with an id of its
// own for good.
func TestColumns(t *testing.T) {
	l := newLake(t)
	l.add(0, key.L24h, up("a"))
	l.publish()
	l.add(1, key.L24h, labels.FromStrings("__name__", "up", "zone", "z", "A.b", "c"))
	l.publish()
	l.clear()
	l.add(2, key.L24h, labels.FromStrings("__name__", "up", "az", "z"))
	l.publish()
	m := l.read("series").meta
	got := map[string]int{}
	for _, f := range m.Schema().Fields {
		got[f.Name] = f.ID
	}
	require.Equal(t, map[string]int{
		"metric": 1, "series_id": 2, "min_ts_ms": 3, "max_ts_ms": 4, "samples": 5, "histograms": 6, "exemplars": 7,
		"l_job": 8, "labels": 9, "l_zone": 12, "l_az": 13,
	}, got)
	require.Equal(t, 13, m.LastColumnID)
	require.Len(t, m.Schemas, 3)
	require.Contains(t, m.Properties[iceberg.PropertyNameMapping], `{"field-id":9,"names":["labels"],"fields":[{"field-id":10,"names":["key"]},{"field-id":11,"names":["value"]}]}`)
	require.Contains(t, m.Properties[iceberg.PropertyNameMapping], `{"field-id":2,"names":["id_signed"]}`)
	require.Equal(t, "false", m.Properties["gc.enabled"])
}

// TestClean: metadata is deleted an hour after it was replaced; other objects never are.
func TestClean(t *testing.T) {
	l := newLake(t)
	l.add(0, key.L24h, up("a"))
	l.publish()
	for day := 1; day < 4; day++ {
		l.now = l.now.Add(Keep/2 + time.Minute)
		l.clear()
		l.add(day, key.L24h, up("a"))
		l.publish()
		l.read("samples") // and everything that it names
		l.read("series")
	}
	var metadata, rest []string
	for _, k := range l.store.Keys() {
		if strings.Contains(k, "/iceberg/samples/") {
			metadata = append(metadata, k)
		} else if strings.Contains(k, "/blocks/") {
			rest = append(rest, k)
		}
	}
	m := l.read("samples").meta
	require.Equal(t, int64(4), l.read("samples").version)
	require.Len(t, m.Snapshots, 3, "the first one was replaced longer than Keep before the last one")
	require.Len(t, metadata, 3+3+3+1, "three versions, lists, manifests, and the hint")
	require.Len(t, rest, 4*3, "no file of a block is deleted")
}

// TestKeep: longer jobs find the metadata that they began with.
func TestKeep(t *testing.T) {
	l := newLake(t)
	l.keep = 3 * Keep
	for day := range 4 {
		l.now = l.now.Add(Keep/2 + time.Minute)
		l.clear()
		l.add(day, key.L24h, up("a"))
		l.publish()
	}
	require.Len(t, l.read("samples").meta.Snapshots, 4)
}

// TestConcurrent: of several publishers at once, none loses the work of another.
func TestConcurrent(t *testing.T) {
	l := newLake(t)
	for day := range 3 {
		l.add(day, key.L24h, up("a"))
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	l.ids = nil // not for concurrent use
	for range 4 {
		wg.Go(func() {
			r, err := l.publisher().Publish(t.Context(), tenant)
			mu.Lock()
			defer mu.Unlock()
			assert.NoError(t, err)
			if assert.Len(t, r.Tables, 2) {
				assert.Equal(t, int64(3), r.Tables[1].Files)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(1), l.read("samples").version, "equal states make one version")
}

// TestFaults: whatever operation fails, before or after its effect, readers find the former state
// or the new one, and the next publication completes it.
func TestFaults(t *testing.T) {
	for _, when := range []memstore.When{memstore.Before, memstore.After} {
		for n := 0; ; n++ {
			l := newLake(t)
			l.add(0, key.L24h, up("a"))
			l.publish()
			l.add(1, key.L24h, up("a"))
			calls := 0
			l.fault = func(memstore.Call) memstore.Fault {
				if calls++; calls == n+1 {
					return memstore.Fault{Err: memstore.Status(500), When: when}
				}
				return memstore.Fault{}
			}
			_, err := l.publisher().Publish(t.Context(), tenant)
			failed := calls > n
			l.fault = nil
			for _, name := range []string{"samples", "series"} {
				require.Contains(t, []int{1, 2}, len(l.read(name).manifests))
			}
			if !failed {
				require.NoError(t, err)
				break
			}
			l.publish()
			for _, name := range []string{"samples", "series"} {
				got := l.read(name)
				require.Len(t, got.manifests, 2, "%d %d", when, n)
				require.Equal(t, int64(2), got.version)
			}
		}
	}
}

// TestMissedBlock: a block that is gone when its meta.json is read was compacted: the manifest is
// read again.
func TestMissedBlock(t *testing.T) {
	l := newLake(t)
	l.add(0, key.L24h, up("a"))
	once := sync.OnceFunc(func() {
		l.clear()
		l.add(1, key.L24h, up("b"))
	})
	l.fault = func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Get && strings.Contains(c.Key, "/meta.json") {
			once()
			if strings.Contains(c.Key, "20260301T") {
				return memstore.Fault{Err: memstore.Status(404)}
			}
		}
		return memstore.Fault{}
	}
	require.Equal(t, int64(1), l.publish().Tables[1].Files)
	require.Contains(t, l.read("samples").manifests[0].Path, "/20260302-")
}

// TestErrors: what a publication cannot mend has an error that states the remedy.
func TestErrors(t *testing.T) {
	hint := key.IcebergPrefix(tenant, "series") + "metadata/" + hintFile
	for name, tc := range map[string]struct {
		spoil func(l *lake)
		want  string
	}{
		"hint":     {func(l *lake) { l.overwrite(hint, "x") }, `version-hint.text is "x", want the number of a version`},
		"lost":     {func(l *lake) { l.overwrite(hint, "7") }, "names version 7, whose object is gone"},
		"metadata": {func(l *lake) { l.overwrite(key.IcebergPrefix(tenant, "series")+"metadata/v2.metadata.json", "{}") }, "not the metadata of an Iceberg table"},
		"restored": {func(l *lake) {
			older := string(l.get(key.Manifest(tenant)))
			l.add(1, key.L24h, up("a"))
			l.publish()
			l.overwrite(key.Manifest(tenant), older)
		}, "ahead of the manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLake(t)
			l.add(0, key.L24h, up("a"))
			l.publish()
			tc.spoil(l)
			_, err := l.publisher().Publish(t.Context(), tenant)
			require.ErrorContains(t, err, "publish tenant t: table series: ")
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "v1/t/iceberg/series/")
		})
	}
}

func (l *lake) overwrite(k, body string) {
	_, err := l.store.Put(l.t.Context(), k, strings.NewReader(body), objstore.Condition{})
	require.NoError(l.t, err)
}

func TestChoose(t *testing.T) {
	w := key.Window(start.UnixMilli())
	b := func(id byte, level key.Level, hours int, slice catalog.Slice) catalog.Block {
		return catalog.Block{ID: idOf(id), Rank: idOf(id), Level: level, Window: w + key.Window(hours)*key.Window(time.Hour.Milliseconds()), Slice: slice}
	}
	var whole catalog.Slice
	for name, tc := range map[string]struct {
		blocks []catalog.Block
		want   []byte
	}{
		"apart":               {[]catalog.Block{b(1, key.L24h, 0, whole), b(2, key.L24h, 24, whole)}, []byte{1, 2}},
		"higher level":        {[]catalog.Block{b(1, key.L12h, 0, whole), b(9, key.L2h, 2, whole), b(3, key.L2h, 12, whole)}, []byte{1, 3}},
		"higher rank":         {[]catalog.Block{b(1, key.L24h, 0, whole), b(2, key.L24h, 0, whole)}, []byte{2}},
		"slices":              {[]catalog.Block{b(1, key.L24h, 0, catalog.Slice{Index: 0, Of: 2}), b(2, key.L24h, 0, catalog.Slice{Index: 1, Of: 2})}, []byte{1, 2}},
		"a slice and a whole": {[]catalog.Block{b(1, key.L24h, 0, catalog.Slice{Index: 0, Of: 2}), b(2, key.L2h, 0, whole)}, []byte{1}},
		"parts":               {[]catalog.Block{b(1, key.Part, 0, whole)}, nil},
	} {
		chosen, others := choose(tc.blocks)
		var got []byte
		for _, c := range chosen {
			got = append(got, c.ID[5])
		}
		slices.Sort(got)
		require.Equal(t, tc.want, got, name)
		require.Len(t, others, len(tc.blocks)-len(tc.want), name)
	}
}
