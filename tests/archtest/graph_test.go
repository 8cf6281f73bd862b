package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's directory as seen from this package's tests.
const root = "../.."

const module = "github.com/promlake/promlake/"

// listed is the output of `go list -json` for one package. Tests merges both kinds of test imports
// (same package, external).
type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// graph maps each package of the module to the packages of the module that it imports; all paths
// are relative to the module's path.
type graph struct{ code, tests map[string][]string }

func readGraph(t *testing.T) graph {
	t.Helper()
	g := graph{code: map[string][]string{}, tests: map[string][]string{}}
	dec := json.NewDecoder(bytes.NewReader(command(t, "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")))
	for {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return g
		}
		require.NoError(t, err, "read go list")
		name := strings.TrimPrefix(p.ImportPath, module)
		g.code[name] = own(p.Imports)
		g.tests[name] = own(slices.Concat(p.TestImports, p.XTestImports))
	}
}

// own returns the imports that are of the module, sorted, each once.
func own(imports []string) []string {
	out := []string{}
	for _, p := range imports {
		if name, ok := strings.CutPrefix(p, module); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// command runs a program in the module's directory and returns what it printed.
func command(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "run %s", cmd)
	return out
}

// within reports whether the package is one of the trees' roots or below one; it returns that root.
func within(name string, trees []string) (string, bool) {
	for _, tree := range trees {
		if name == tree || strings.HasPrefix(name, tree+"/") {
			return tree, true
		}
	}
	return "", false
}
