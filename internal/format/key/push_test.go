package key_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

func TestPush(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	k := key.Push("team-a", id)
	require.Equal(t, "v1/team-a/pushes/"+id+".json", k)
	require.NoError(t, objstore.ValidKey(k))
	require.True(t, strings.HasPrefix(k, key.PushesPrefix("team-a")))
	tenant, back, err := key.ParsePush(k)
	require.NoError(t, err)
	require.Equal(t, []string{"team-a", id}, []string{tenant, back})
	for _, bad := range []string{
		"", k + "/", "/" + k, strings.Replace(k, "v1", "v2", 1), strings.Replace(k, "pushes", "push", 1), strings.Replace(k, "/team-a/", "//", 1),
		strings.Replace(k, ".json", "", 1), strings.Replace(k, "0123", "012", 1), strings.Replace(k, "0123", "012g", 1), strings.Replace(k, "abc", "ABC", 1),
	} {
		_, _, err := key.ParsePush(bad)
		require.ErrorIs(t, err, key.ErrSyntax, bad)
	}
}
