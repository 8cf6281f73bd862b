package snapshot

import (
	"log/slog"
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
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestSnapshotsAfterOthers: a snapshot leaves out of its listing what an earlier one knows to be
// consumed, and has all that is live: segments that came since, those that a later manifest does not
// know, and all of them once there is no manifest any more.
func TestSnapshotsAfterOthers(t *testing.T) {
	dir, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	for name, store := range map[string]objstore.Store{"directory": dir, "bucket": memstore.New(memstore.Settings{})} {
		t.Run(name, func(t *testing.T) {
			m, now := request.NewMetrics(nil, time.Now), time.UnixMilli(1_000_000)
			c := New(Settings{MaxStaleness: time.Second}, store, source.New(source.Settings{}, store, &tempdir.WorkDir{}, nil, m), index.NewCache(1<<20, 0, time.Now), func() time.Time { return now }, m, slog.New(slog.DiscardHandler))
			live := func() (out []byte) {
				t.Helper()
				now = now.Add(time.Hour)
				_, err := c.Range(0, key.WindowMillis).Read(t.Context(), func(snap catalog.Snapshot) error {
					out = nil
					for _, s := range snap.Segments {
						out = append(out, s.ID[15])
					}
					return nil
				})
				require.NoError(t, err)
				return out
			}
			put := func(n byte) {
				t.Helper()
				s := key.Segment{Tenant: tenant.Default, Window: 0, ID: ulid.ULID{5: n, 15: n}}
				_, err := store.Put(t.Context(), s.String(), strings.NewReader("x"), objstore.Condition{})
				require.NoError(t, err)
			}
			consume := func(ns ...byte) {
				t.Helper()
				var src catalog.Sources
				for _, n := range ns {
					src.Segments = append(src.Segments, catalog.SegmentID{ID: ulid.ULID{5: n, 15: n}})
				}
				_, err := catalog.Commit(t.Context(), store, tenant.Default, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
					return m.Replace(now, src, nil)
				})
				require.NoError(t, err)
			}
			for n := range byte(4) {
				put(n + 1)
			}
			require.ElementsMatch(t, []byte{1, 2, 3, 4}, live())
			consume(1, 2)
			require.ElementsMatch(t, []byte{3, 4}, live())
			put(5)
			require.ElementsMatch(t, []byte{3, 4, 5}, live())
			consume(4)
			require.ElementsMatch(t, []byte{3, 5}, live())
			require.NoError(t, store.Delete(t.Context(), key.Manifest(tenant.Default)))
			require.ElementsMatch(t, []byte{1, 2, 3, 4, 5}, live())
		})
	}
}
