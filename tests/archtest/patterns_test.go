package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// compiling are the packages that may compile a regular expression whose text is not a constant,
// and the reason why no request can send a large one. A package that compiles what came with a
// request must let expression.Limits check it first.
var compiling = map[string]string{
	"internal/store/catalog":      "matchers of deletions, which have limits of their own when they are stored",
	"internal/sql/flightsql":      "patterns of names of tables",
	"internal/query/api":          "the operator's setting of origins",
	"internal/query/api/weights":  "match_pattern, which the guard checks",
	"internal/query/plan":         "arguments of label_replace: strings of an expression that was checked",
	"internal/sql/pushdown":       "conditions of SQL, checked where they are compiled",
	"internal/query/usage":        "patterns of metric names, checked before they are counted",
	"internal/rules/ruletemplate": "arguments of a template's functions, which count against its budget",
	"internal/rules/ruletest":     "the argument of a command",
}

// TestPatternsAreCompiledInFewPlaces finds calls that compile regular expressions. What upstream's
// parser compiles are strings of expressions.
func TestPatternsAreCompiledInFewPlaces(t *testing.T) {
	names := strings.Split(string(command(t, "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")), "\n")
	found := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || !strings.HasPrefix(name, "internal/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) || name == "" {
			continue // tracked, and removed in the work tree
		}
		require.NoError(t, err)
		watch(t, filepath.Dir(name))
		for _, line := range compiles(t, name, string(text)) {
			found++
			require.Contains(t, compiling, filepath.Dir(name), "%s:%d compiles a regular expression", name, line)
		}
	}
	require.Greater(t, found, 5)
}

// compiles returns the lines of a source that compile a regular expression that is not a literal.
func compiles(t *testing.T, name, text string) (lines []int) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	packages := map[string]string{} // by the name in the file
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		require.NoError(t, err)
		local := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			local = i.Name.Name
		}
		packages[local] = local
		if strings.HasSuffix(path, "/regexp") || path == "regexp" || path == "regexp/syntax" || strings.HasSuffix(path, "prometheus/model/labels") || strings.HasSuffix(path, "prometheus/model/relabel") {
			packages[local] = path[strings.LastIndexByte(path, '/')+1:]
		}
	}
	literal := func(e ast.Expr) bool { _, ok := e.(*ast.BasicLit); return ok }
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := f.X.(*ast.Ident)
		if !ok {
			return true
		}
		bad := false
		switch packages[x.Name] + "." + f.Sel.Name {
		case "regexp.Compile", "regexp.MustCompile", "regexp.CompilePOSIX", "regexp.MatchString", "regexp.Match", "syntax.Parse", "relabel.NewRegexp", "relabel.MustNewRegexp", "labels.NewFastRegexMatcher":
			bad = !literal(call.Args[0])
		case "labels.NewMatcher", "labels.MustNewMatcher":
			kind, ok := call.Args[0].(*ast.SelectorExpr)
			constant := ok && slices.Contains([]string{"MatchEqual", "MatchNotEqual"}, kind.Sel.Name)
			bad = !constant && !literal(call.Args[len(call.Args)-1])
		}
		if bad {
			lines = append(lines, files.Position(call.Pos()).Line)
		}
		return true
	})
	return lines
}

// TestCompilesFinds shows that the rule bites.
func TestCompilesFinds(t *testing.T) {
	head := "package a\nimport (\"regexp\"; m \"github.com/prometheus/prometheus/model/labels\")\n"
	for body, want := range map[string]int{
		"var _ = regexp.MustCompile(`a`)":                  0,
		"var _ = regexp.MustCompile(\"^\" + x)":            1,
		"var _, _ = regexp.MatchString(x, y)":              1,
		"var _ = m.MustNewMatcher(m.MatchEqual, a, b)":     0,
		"var _ = m.MustNewMatcher(kind, a, b)":             1,
		"var _ = m.MustNewMatcher(m.MatchRegexp, a, `.+`)": 0,
	} {
		require.Len(t, compiles(t, "a.go", head+body), want, body)
	}
}
