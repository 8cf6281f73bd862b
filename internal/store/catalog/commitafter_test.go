package catalog_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestCommitAfter: a commit that knows the present version, an earlier one or none gives the same
// manifest, and copies what it replaces, byte for byte, if its committer did not.
func TestCommitAfter(t *testing.T) {
	for _, copied := range []bool{true, false} {
		for _, versionsAgo := range []int{0, 1, 2} {
			script := &memstore.Script{}
			store := newStore(t, script.Next)
			known := []catalog.Version{{Manifest: catalog.Empty()}}
			see := func() {
				v, err := catalog.Refresh(t.Context(), store, "a", catalog.Version{})
				require.NoError(t, err)
				known = append(known, v)
			}
			commit(t, store, tick(1))
			see()
			if !copied {
				script.Add(toCopy, memstore.Fault{Err: errFault})
			}
			before := commit(t, store, tick(2))
			see()
			read := func(k string) string {
				r, _, err := store.Get(t.Context(), k, 0, -1)
				require.NoError(t, err)
				b, err := io.ReadAll(r)
				require.NoError(t, err)
				require.NoError(t, r.Close())
				return string(b)
			}
			replaced := read(key.Manifest("a"))
			of := known[len(known)-1-versionsAgo]
			had, err := catalog.Encode(of.Manifest)
			require.NoError(t, err)
			m, err := catalog.CommitAfter(t.Context(), store, "a", of, tick(3))
			require.NoError(t, err)
			require.Equal(t, before.ID, m.Parent)
			require.EqualValues(t, 3, m.Generation)
			require.Len(t, m.Consumed, 3)
			cur, _, err := catalog.ReadManifest(t.Context(), store, "a")
			require.NoError(t, err)
			require.Equal(t, m.ID, cur.ID)
			require.Equal(t, replaced, read(key.ManifestCopy("a", before.ID)))
			same, err := catalog.CommitAfter(t.Context(), store, "a", of, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) { return m, nil })
			require.NoError(t, err)
			require.Equal(t, cur, same, "a change that changes nothing")
			still, err := catalog.Encode(of.Manifest)
			require.NoError(t, err)
			require.Equal(t, string(had), string(still), "what was known does not change")
		}
	}
}
