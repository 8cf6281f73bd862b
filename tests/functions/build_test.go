package functions

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// envPrograms names a directory with a bootstrap of each program, as infra/build.sh makes them in
// dist/<arch>/programs. Without it the tests build their own.
const envPrograms = "PROMLAKE_FUNCTIONS"

// programs is the directory of the bootstraps.
var programs string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if programs = os.Getenv(envPrograms); programs != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "promlake-functions-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	for _, name := range []string{"ingest-fn", "compact-fn", "query-fn"} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", bootstrap(name), "../../"+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", name, err, out)
			return 1
		}
	}
	return m.Run()
}

func bootstrap(program string) string { return filepath.Join(programs, program, "bootstrap") }
