package query_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/tenant"
)

const secret = "s3cr3t-of-the-host"

// hostileFiles returns the statements of testdata/hostile.sql, with files that hold the secret.
func hostileFiles(t *testing.T) (statements []string, out string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"{file}": "a.csv", "{json}": "a.json", "{parquet}": "a.parquet", "{db}": "a.db"}
	replace := []string{"{dir}", dir, "{out}", filepath.Join(dir, "out")}
	for k, name := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("column0\n"+secret+"\n"), 0o600))
		replace = append(replace, k, path)
	}
	text, err := os.ReadFile("testdata/hostile.sql")
	require.NoError(t, err)
	for _, line := range strings.Split(string(text), "\n") {
		if line != "" && !strings.HasPrefix(line, "-- ") {
			statements = append(statements, strings.NewReplacer(replace...).Replace(line))
		}
	}
	return statements, dir
}

// TestHostileSQL: each statement is refused as the client's fault, and neither reads nor writes
// anything but the tenant's objects.
func TestHostileSQL(t *testing.T) {
	t.Setenv("PROMLAKE_TEST_SECRET", secret)
	statements, dir := hostileFiles(t)
	require.GreaterOrEqual(t, len(statements), 200)
	l := newLake(t, newDirStore(t), query.Settings{Timeout: 5 * time.Minute})
	l.write(tenant.Default, []segment.Row{{Labels: metric("m1"), Floats: []segment.Float{{T: testNow().UnixMilli(), V: 1}}}})
	before, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, s := range statements {
		var out kept
		err := l.SQL(t.Context(), query.Statement{Text: s, Format: "csv"}, &out)
		require.Error(t, err, "%s\n%s", s, out.String())
		var bad interface{ BadQuery() bool }
		require.True(t, errors.As(err, &bad) && bad.BadQuery(), "%s: %v", s, err)
		require.NotEmpty(t, err.Error(), s)
		require.NotContains(t, err.Error()+out.String(), secret, s)
	}
	after, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, len(before), len(after), "files appeared")
	require.Equal(t, []string{"1"}, l.sql("SELECT count(*) FROM samples"), "the tables are as they were")
}
