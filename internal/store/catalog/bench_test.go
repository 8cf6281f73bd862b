package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

// BenchmarkList lists a window in a directory with 100 live segments, and others that wait for their
// deletion.
func BenchmarkList(b *testing.B) {
	for _, garbage := range []int{0, 1000, 7000} {
		dir := b.TempDir()
		store, err := filestore.New(dir)
		require.NoError(b, err)
		m := catalog.Empty()
		for i := range garbage + 100 {
			id := catalog.SegmentID{ID: ulid.ULID{4: byte(i >> 8), 5: byte(i)}}
			path := filepath.Join(dir, filepath.FromSlash(id.Key("a").String()))
			require.NoError(b, os.MkdirAll(filepath.Dir(path), 0o750))
			require.NoError(b, os.WriteFile(path, []byte("x"), 0o600))
			if i < garbage {
				m.Consumed = append(m.Consumed, catalog.Consumed{SegmentID: id})
			}
		}
		for name, known := range map[string]catalog.Manifest{"nothing": catalog.Empty(), "all": m} {
			b.Run(fmt.Sprintf("garbage=%d/known=%s", garbage, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					l, err := catalog.ListLive(b.Context(), store, "a", key.MinTime, key.MaxTime, known)
					require.NoError(b, err)
					require.Len(b, l.With(m).Segments, 100)
				}
			})
		}
	}
}
