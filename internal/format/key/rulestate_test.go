package key_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

func TestRuleState(t *testing.T) {
	seen := map[string]bool{}
	for _, tenant := range []string{"a", "team-a", "a.json", "!-_.*'()"} {
		for _, names := range [][2]string{{"n", "g"}, {"ng", ""}, {"", "ng"}, {"a/b", "c d"}, {"a", "/b"}, {"ü", "\n"}} {
			k := key.RuleState(tenant, names[0], names[1])
			require.NoError(t, objstore.ValidKey(k))
			require.False(t, seen[k], "each group has an object of its own")
			seen[k] = true
			back, _, err := key.ParseRuleState(k)
			require.NoError(t, err)
			require.Equal(t, tenant, back)
			require.Contains(t, k, key.RuleStatesOf(tenant))
		}
	}
	good := key.RuleState("t", "n", "g")
	require.Equal(t, "rules-state/t/67d322b7217a990a6717082721692c99.json", good)
	for _, k := range []string{"", "rules-state/", "rules-state/t", "rules-state/t/x.json", "rules-state//" + good[14:], "/" + good, good + "/", good[:len(good)-6] + "A.json", "rules/t.json"} {
		_, _, err := key.ParseRuleState(k)
		require.ErrorIs(t, err, key.ErrSyntax, k)
	}
}
