package memory_test

import (
	"debug/elf"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/memory"
)

// TestReleaseCode maps all code of this program, and releases it.
func TestReleaseCode(t *testing.T) {
	file, err := elf.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, elf.ET_EXEC, file.Type, "what go build makes by default")
	own, err := os.Open("/proc/self/mem")
	require.NoError(t, err)
	defer own.Close()
	var bytes int64
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W == 0 {
			n, err := own.ReadAt(make([]byte, p.Filesz), int64(p.Vaddr))
			require.NoError(t, err)
			bytes += int64(n)
		}
	}

	code, err := memory.ProgramCode()
	require.NoError(t, err)
	before := residentFiles(t)
	require.GreaterOrEqual(t, before, bytes)
	require.NoError(t, code.Release())
	require.Less(t, residentFiles(t), before)
}

// TestDivideCode divides the code of this program into many mappings, and runs on.
func TestDivideCode(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	info, err := os.Stat(program)
	require.NoError(t, err)
	mappings := func() int {
		text, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return strings.Count(string(text), program)
	}
	code, err := memory.ProgramCode()
	require.NoError(t, err)
	require.NoError(t, code.Divide())
	divided := mappings()
	require.Greater(t, int64(divided), info.Size()/(64<<10), "most of the file is code")
	require.NoError(t, code.Divide())
	require.Equal(t, divided, mappings(), "it is divided already")
	require.NoError(t, code.Release())
}

// residentFiles returns the bytes of files in the process's resident memory.
func residentFiles(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "\nRssFile:")
	require.True(t, ok)
	kB, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kB << 10
}
