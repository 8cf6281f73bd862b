package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/base/settings"
)

// ofOthers are flags of other programs.
var ofOthers = []string{"port", "secret", "keep-alive", "sidecar", "quiet", "data-urlencode"} // of versitygw, curl

// TestHintsNameFlags: every flag that a text of the programs names is a flag of one of them.
func TestHintsNameFlags(t *testing.T) {
	known := slices.Clone(ofOthers)
	var add func(n *kong.Node)
	add = func(n *kong.Node) {
		for _, f := range n.Flags {
			known = append(known, f.Name, f.Tag.Negatable, "no-"+f.Name)
		}
		for _, c := range n.Children {
			add(c)
		}
	}
	functions := settings.Default[everything]()
	for _, grammar := range []any{newCLI(), &functions} {
		k, err := flags.NewParser(program, description, grammar)
		require.NoError(t, err)
		add(k.Model.Node)
	}
	tagged := regexp.MustCompile(`\bname:"([^"]+)"`) // of settings that only functions have
	named := regexp.MustCompile(`(?:^|[^-\w])--([a-z][a-z0-9]*(?:[.-][a-z0-9]+)*)`)
	texts := map[string]string{} // by flag
	for _, dir := range []string{"cmd", "internal", "ingest-fn", "compact-fn", "query-fn"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				for _, m := range tagged.FindAllStringSubmatch(text, -1) {
					known = append(known, m[1])
				}
				for _, m := range named.FindAllStringSubmatch(text, -1) {
					texts[m[1]] = path + ": " + text
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, len(texts), 100)
	for name, text := range texts {
		require.Contains(t, known, name, "%s names a flag that does not exist", text)
	}
}
