package key_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

func TestDashboard(t *testing.T) {
	for name, want := range map[string]string{"load": "load", "Über/50 %": "%C3%9Cber%2F50%20%25", "..": "..", "a+b": "a+b"} {
		k := key.Dashboard("team-a", name)
		require.Equal(t, "v1/team-a/dashboards/"+want+".json", k)
		require.NoError(t, objstore.ValidKey(k))
		require.True(t, strings.HasPrefix(k, key.DashboardsPrefix("team-a")))
		tenant, back, err := key.ParseDashboard(k)
		require.NoError(t, err)
		require.Equal(t, []string{"team-a", name}, []string{tenant, back})
	}
	const k = "v1/team-a/dashboards/a%20b.json"
	for _, bad := range []string{
		"", k + "/", "/" + k, strings.Replace(k, "v1", "v2", 1), strings.Replace(k, "dashboards", "pushes", 1), strings.Replace(k, "/team-a/", "//", 1),
		strings.Replace(k, ".json", "", 1), strings.Replace(k, "%20", " ", 1), strings.Replace(k, "%20", "%2", 1), strings.Replace(k, "%20", "%61", 1),
		strings.Replace(k, "a%20b", "", 1), strings.Replace(k, "%20", "/", 1),
	} {
		_, _, err := key.ParseDashboard(bad)
		require.ErrorIs(t, err, key.ErrSyntax, bad)
	}
}
