package functions

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/promlake/promlake/tests/support/servertest"
)

// envPrograms names a directory with a bootstrap of each program, as infra/build.sh makes them in
// dist/<arch>/programs. Without it the tests build their own.
const envPrograms = "PROMLAKE_FUNCTIONS"

// programs are the bootstraps by name.
var programs = map[string]string{}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "promlake-functions-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"ingest-fn", "compact-fn", "query-fn"} {
		if given := os.Getenv(envPrograms); given != "" {
			programs[name] = filepath.Join(given, name, "bootstrap")
		} else if programs[name], err = servertest.Program(name, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}
