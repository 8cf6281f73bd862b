//go:build linux && cgo

package memory_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mapsOnly makes this program print its mappings instead of testing.
const mapsOnly = "PROMLAKE_TEST_PRINT_MAPS"

func TestMain(m *testing.M) {
	if os.Getenv(mapsOnly) == "" {
		os.Exit(m.Run())
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(text)
}

// TestServersDivideTheirCode counts the mappings of a program's file.
func TestServersDivideTheirCode(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	mappings := func(arg string) int {
		cmd := exec.Command(program, arg)
		cmd.Env = append(os.Environ(), mapsOnly+"=1")
		out, err := cmd.Output()
		require.NoError(t, err)
		return strings.Count(string(out), program)
	}
	whole := mappings("query")
	require.Positive(t, whole)
	require.Greater(t, mappings("serve"), 2*whole)
}
