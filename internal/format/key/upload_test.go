package key_test

import (
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
)

func TestUpload(t *testing.T) {
	u := key.Upload{Tenant: "a", ID: ulid.MustParse("01M830A8Q5FDT227PX59J0YKC3")}
	for _, name := range []string{key.UploadState, "index", "tombstones", "chunks/000001", "chunks/999999"} {
		k := u.File(name)
		require.Equal(t, "v1/a/uploads/01M830A8Q5FDT227PX59J0YKC3/"+name, k)
		back, file, err := key.ParseUploadFile(k)
		require.NoError(t, err)
		require.Equal(t, u, back)
		require.Equal(t, name, file)
		require.Contains(t, k, key.UploadsPrefix("a"))
	}
	const prefix = "v1/a/uploads/01M830A8Q5FDT227PX59J0YKC3/"
	for _, bad := range []string{
		"", prefix, prefix + "meta.json", prefix + "index/", prefix + "chunks/1", prefix + "chunks/0000001", prefix + "chunks/00000a", prefix + "chunks/../index", prefix + "/index",
		"v1//uploads/01M830A8Q5FDT227PX59J0YKC3/index", "v1/a/uploads/x/index", "v1/a/uploads/01m830a8q5fdt227px59j0ykc3/index", "v1/a/imports/01M830A8Q5FDT227PX59J0YKC3/index", "v2" + prefix[2:] + "index",
	} {
		_, _, err := key.ParseUploadFile(bad)
		require.ErrorIs(t, err, key.ErrSyntax, bad)
	}
}
