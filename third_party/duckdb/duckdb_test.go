package duckdb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/third_party/duckdb"
)

// TestHeaderIsTheBindings fails when the binding's module was updated without the header.
func TestHeaderIsTheBindings(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/duckdb/duckdb-go-bindings/include").Output()
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "duckdb.h"))
	require.NoError(t, err)
	require.True(t, string(want) == string(duckdb.Header), "copy duckdb.h from %s", dir)
}
