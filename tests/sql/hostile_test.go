package sql

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
