package snapshot

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// decodedSize is a decoded object.
type decodedSize int64

// Bytes implements index.Sized.
func (s decodedSize) Bytes() int64 { return int64(s) }

// TestReplacedObjectsAreForgotten: once a read has seen a manifest that replaces objects, nothing
// that is decoded of them is kept, and what others of the store have is. A read of the past forgets
// nothing.
func TestReplacedObjectsAreForgotten(t *testing.T) {
	stored := time.UnixMilli(2_000_000_000_000) // the clock of the store
	store := memstore.New(memstore.Settings{Now: func() time.Time { return stored }})
	m := request.NewMetrics(nil, time.Now)
	decoded := index.NewCache(1<<20, 0, time.Now)
	now := time.UnixMilli(1_000_000)
	c := New(Settings{MaxStaleness: time.Second}, store, source.New(source.Settings{}, store, &tempdir.WorkDir{}, nil, m), decoded, func() time.Time { return now }, m, slog.New(slog.DiscardHandler))
	read := func(asOf time.Time, mint, maxt int64) catalog.Snapshot {
		now = now.Add(time.Hour)
		var out catalog.Snapshot
		ctx := request.WithAsOf(t.Context(), asOf)
		_, err := c.Range(mint, maxt).Read(ctx, func(snap catalog.Snapshot) error { out = snap; return nil })
		require.NoError(t, err)
		return out
	}
	id := func(n uint64) (id ulid.ULID) {
		require.NoError(t, id.SetTime(n))
		return id
	}
	var segments []key.Segment
	for n := range uint64(4) {
		s := key.Segment{Tenant: tenant.Default, Window: key.Window(int64(n/3) * key.WindowMillis), ID: id(n + 1)}
		_, err := store.Put(t.Context(), s.String(), strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
		segments = append(segments, s)
	}
	block := func(n uint64) catalog.Block {
		return catalog.Block{Level: key.Part, ID: id(n), Rank: id(n), MaxT: 100, Series: 1, Samples: 1, Bytes: 1}
	}
	commit := func(blocks []catalog.Block, consumed ...key.Segment) {
		stored = stored.Add(time.Minute)
		_, err := catalog.Commit(t.Context(), store, tenant.Default, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
			m.Blocks = blocks
			for _, s := range consumed {
				m.Consumed = append(m.Consumed, catalog.Consumed{SegmentID: catalog.SegmentIDOf(s), At: now.UnixMilli(), Generation: m.Generation})
			}
			return m, nil
		})
		require.NoError(t, err)
	}
	names := map[string]string{
		"first": segments[0].String(), "second": segments[1].String(), "third": segments[2].String(), "later": segments[3].String(),
		"first samples": "samples of " + segments[0].String(), "third samples": "samples of " + segments[2].String(),
		"old block": block(5).Key(tenant.Default).File("series.parquet"), "old block's samples": index.PartKey("samples", block(5).Key(tenant.Default).File("series.parquet"), "rows"),
		"new block": block(6).Key(tenant.Default).File("series.parquet"),
	}
	for _, k := range names {
		_, _, err := index.Get(t.Context(), decoded, k, func() (decodedSize, error) { return 10, nil })
		require.NoError(t, err)
	}
	held := func() (out []string) {
		for name, k := range names {
			if decoded.Has(k) {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
	all := held()
	require.Len(t, all, len(names))
	commit([]catalog.Block{block(5)})
	begin := stored.Add(time.Second)
	require.Len(t, read(time.Time{}, 0, key.WindowMillis).Segments, 4)
	require.Equal(t, all, held())

	commit([]catalog.Block{block(6)}, segments[0], segments[1])
	require.Len(t, read(begin, 0, key.WindowMillis).Segments, 4)
	require.Equal(t, all, held(), "a read of the past")
	now = now.Add(time.Hour)
	require.Len(t, read(time.Time{}, 0, 10).Segments, 1)
	require.Equal(t, []string{"later", "new block", "third", "third samples"}, held())
	require.Len(t, read(time.Time{}, 0, 10).Segments, 1)
	require.Len(t, held(), 4)
}
