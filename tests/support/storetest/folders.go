package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

func folders(t *testing.T, s objstore.Store, prefix string) []string {
	t.Helper()
	out := []string{}
	for f, err := range s.ListFolders(t.Context(), prefix) {
		require.NoError(t, err)
		out = append(out, f)
	}
	return out
}

func testListFolders(t *testing.T, s objstore.Store) {
	assert.Empty(t, folders(t, s, ""))
	for _, k := range []string{
		"top", "v1/stray", "v1/a/x", "v1/a/y", "v1/a!/x", "v1/a0/x", "v1/ab/c/d", "v1/b c/x", "v1/z\u00e9/x", "v10/x/y", "v2/a/x",
	} {
		put(t, s, k, "x")
	}
	for prefix, want := range map[string][]string{
		"":         {"v1/", "v10/", "v2/"},
		"v1/":      {"v1/a!/", "v1/a/", "v1/a0/", "v1/ab/", "v1/b c/", "v1/z\u00e9/"},
		"v1/ab/":   {"v1/ab/c/"},
		"v1/ab/c/": {},
		"v3/":      {},
		"v1/a//":   {},
		"../":      {},
		"v1/../":   {},
	} {
		assert.Equal(t, want, folders(t, s, prefix), "%q", prefix)
	}

	// Strong: deleted objects are gone, and new ones are listed.
	require.NoError(t, s.Delete(t.Context(), "v1/a!/x"))
	require.NoError(t, s.Delete(t.Context(), "v1/a/x"))
	require.NoError(t, s.Delete(t.Context(), "v1/ab/c/d"))
	put(t, s, "v1/aa/x", "x")
	assert.Equal(t, []string{"v1/a/", "v1/a0/", "v1/aa/", "v1/b c/", "v1/z\u00e9/"}, folders(t, s, "v1/"))

	for f, err := range s.ListFolders(t.Context(), "v1/") { // a caller may stop early
		require.NoError(t, err)
		assert.Equal(t, "v1/a/", f)
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs := 0
	for _, err := range s.ListFolders(ctx, "v1/") {
		require.ErrorIs(t, err, context.Canceled)
		errs++
	}
	assert.Equal(t, 1, errs, "one error, then the end")
}
