// Package lambdatest runs emulated functions in tests.
package lambdatest

import (
	"cmp"
	"time"

	"github.com/promlake/promlake/tests/support/emulator"
)

// TB is the part of testing.TB that this package uses.
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
}

// grace is so long that a busy machine does not keep a process from ending in time.
const grace = 5 * time.Minute

// Start returns a function that writes its output to the test's log, unless the settings have
// another writer, and that waits minutes for the end of a process, unless they say how long. Its
// processes are killed at the end of the test. No process runs before the first invocation.
func Start(t TB, s emulator.Settings) *emulator.Function {
	t.Helper()
	if s.Log == nil {
		s.Log = LogTo(t)
	}
	s.Grace = cmp.Or(s.Grace, grace)
	f := emulator.New(s)
	t.Cleanup(f.Kill)
	return f
}
