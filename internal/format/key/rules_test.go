package key_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

func TestRules(t *testing.T) {
	for _, tenant := range []string{"a", "team-a", "a.json", "!-_.*'()"} {
		k := key.Rules(tenant)
		require.NoError(t, objstore.ValidKey(k))
		back, err := key.ParseRules(k)
		require.NoError(t, err)
		require.Equal(t, tenant, back)
	}
	require.Equal(t, "rules/team-a.json", key.Rules("team-a"))
	for _, k := range []string{"", "rules/", "rules/.json", "rules/a", "rules/a/b.json", "/rules/a.json", "v1/rules/a.json", "rules/a.json/"} {
		_, err := key.ParseRules(k)
		require.ErrorIs(t, err, key.ErrSyntax, k)
	}
}
