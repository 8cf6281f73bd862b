package objstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestListFoldersOfAnyStore: a store that can only list objects yields the same folders, with one
// listing per folder and one more.
func TestListFoldersOfAnyStore(t *testing.T) {
	listings := 0
	s := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.List {
			listings++
		}
		return memstore.Fault{}
	}})
	for _, k := range []string{"v1/stray", "v1/a/x", "v1/a/y/z", "v1/a!/x", "v1/ab/x", "v2/a/x"} {
		_, err := s.Put(t.Context(), k, strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
	}
	for _, tc := range []struct {
		store    objstore.Lister
		listings int
	}{{s, 1}, {struct{ objstore.Lister }{s}, 4}} {
		var got []string
		listings = 0
		for f, err := range objstore.ListFolders(t.Context(), tc.store, "v1/") {
			require.NoError(t, err)
			got = append(got, f)
		}
		require.Equal(t, []string{"v1/a!/", "v1/a/", "v1/ab/"}, got)
		require.Equal(t, tc.listings, listings)
	}
}
