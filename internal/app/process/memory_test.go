package process_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
)

// TestRunHasAMemoryLimit holds that stages get the budget of the process, that Go keeps below it,
// and that it has a default.
func TestRunHasAMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "")
	for given, want := range map[int64]int64{0: memory.DefaultLimit(), 3 << 30: 3 << 30} {
		s, f := settings(t), newFakeStage()
		s.MemoryLimit = given
		r := run(t, s, f)
		require.Equal(t, want, f.parts.Memory.Limit())
		require.Less(t, debug.SetMemoryLimit(-1), want)
		_, body := get(t, f.parts.URL+"/metrics")
		require.Contains(t, body, "\npromlake_memory_limit_bytes ")
		require.Contains(t, body, "\npromlake_memory_used_bytes ")
		r.stop()
		require.NoError(t, <-r.done)
	}
}
