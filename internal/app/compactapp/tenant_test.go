package compactapp

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/memstore"
)

func TestOnlyListsOneTenant(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	for _, k := range []string{"v1/a/x", "v1/b/x", "v1/b/y/z", "v1/bb/x", "v1/c/x"} {
		_, err := store.Put(t.Context(), k, strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
	}
	v := only(store, "b")
	for _, tc := range []struct{ prefix, startAfter, want string }{
		{"", "", "v1/b/x v1/b/y/z"},
		{"v1/", "", "v1/b/x v1/b/y/z"},
		{"v1/", "v1/b/x", "v1/b/y/z"},
		{"v1/", "v1/b0", ""},
		{"v1/b", "", "v1/b/x v1/b/y/z"},
		{"v1/b/y", "", "v1/b/y/z"},
		{"v1/bb/", "", ""},
		{"v1/c/", "", ""},
	} {
		var got []string
		for obj, err := range v.List(t.Context(), tc.prefix, tc.startAfter) {
			require.NoError(t, err)
			got = append(got, obj.Key)
		}
		require.Equal(t, strings.Fields(tc.want), append([]string{}, got...), "%+v", tc)
	}
	tenants, err := catalog.Tenants(t.Context(), v)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, tenants)
}

func TestOnlyKeepsFilesInPlace(t *testing.T) {
	_, local := only(memstore.New(memstore.Settings{}), "a").(objstore.Local)
	require.False(t, local)
	files, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	_, local = only(files, "a").(objstore.Local)
	require.True(t, local)
}

// TestShiftHidesNothing: a directory behind another clock still lists and deletes many objects at
// once.
func TestShiftHidesNothing(t *testing.T) {
	files, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	s := objstore.Over(files, shifted{files, time.Hour})
	for _, k := range []string{"v1/a/x", "v1/a/y", "v1/b/x"} {
		_, err := s.Put(t.Context(), k, strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
	}
	require.Implements(t, (*objstore.Local)(nil), s)
	require.Implements(t, (*objstore.ExceptLister)(nil), s)
	require.Implements(t, (*objstore.BatchDeleter)(nil), s)
	require.Implements(t, (*objstore.BatchDeleter)(nil), only(s, "a"))
	n, err := objstore.DeleteAll(t.Context(), only(s, "a"), []string{"v1/a/x", "v1/a/y"})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	tenants, err := catalog.Tenants(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, tenants)
	var got []string
	for obj, err := range objstore.ListExcept(t.Context(), s, "", "", func(string) bool { return false }) {
		require.NoError(t, err)
		got = append(got, obj.Key)
	}
	require.Equal(t, []string{"v1/b/x"}, got)
}
