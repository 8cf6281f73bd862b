package key_test

import (
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
)

func TestImport(t *testing.T) {
	id := ulid.MustParse("01M830A8Q5FDT227PX59J0YKC3")
	k := key.Import("a", id)
	require.Equal(t, "v1/a/imports/01M830A8Q5FDT227PX59J0YKC3.json", k)
	tenant, back, err := key.ParseImport(k)
	require.NoError(t, err)
	require.Equal(t, "a", tenant)
	require.Equal(t, id, back)
	for _, bad := range []string{"", "v1/a/imports/", "v1//imports/01M830A8Q5FDT227PX59J0YKC3.json", "v1/a/imports/01M830A8Q5FDT227PX59J0YKC3", "v1/a/imports/x.json", "v1/a/manifests/01M830A8Q5FDT227PX59J0YKC3.json", k + "/x"} {
		_, _, err := key.ParseImport(bad)
		require.ErrorIs(t, err, key.ErrSyntax, bad)
	}
}
