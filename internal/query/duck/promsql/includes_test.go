package promsql_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var include = regexp.MustCompile(`(?m)^\s*#include "((?:\.\./|\w+/)[^"]*/)?[^"/]+"`)

// TestIncludesAreImports holds the includes of headers of other packages against the imports, and
// each such package must embed its headers: the go command compiles again only what imports a
// package that changed.
func TestIncludesAreImports(t *testing.T) {
	const module = "github.com/promlake/promlake/"
	const here = "internal/query/duck/promsql"
	seen := 0
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		ext := path.Ext(name)
		if d.IsDir() || strings.HasSuffix(name, "_test.go") || !slices.Contains([]string{".c", ".h", ".go"}, ext) {
			return nil
		}
		dir := filepath.Dir(name)
		imports := imported(t, dir)
		for _, m := range include.FindAllStringSubmatch(read(t, name), -1) {
			of := filepath.Join(dir, m[1])
			if of == dir {
				continue
			}
			seen++
			require.Contains(t, imports, module+path.Join(here, of), "%s includes a header of %s", name, of)
			require.Regexp(t, `(?m)^//go:embed (\*\.h|duckdb\.h)$`, imported(t, of), "%s embeds its headers", of)
		}
		return nil
	}))
	require.Greater(t, seen, 5)
}

// imported returns the Go code of a directory, tests aside.
func imported(t *testing.T, dir string) string {
	var code strings.Builder
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			code.WriteString(read(t, name))
		}
	}
	return code.String()
}

func read(t *testing.T, name string) string {
	body, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(body)
}
