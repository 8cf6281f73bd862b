package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/telemetry"
)

// TestLogIsBounded: whatever the texts of a record are, its line has a bounded length.
func TestLogIsBounded(t *testing.T) {
	long := strings.Repeat("ü", 1<<20)
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		l, err := telemetry.NewLogger(&out, telemetry.LogSettings{Level: "debug", Format: format})
		require.NoError(t, err)
		with := l.With("rule", long).WithGroup("g")
		with.Error(long, "err", errors.New(long), "text", long, "group", slog.GroupValue(slog.String("a", long)), "list", []string{long}, "n", 1, long, "")
		require.Less(t, out.Len(), 100<<10)
		require.Contains(t, out.String(), "… (2097152 bytes)")
		require.Equal(t, 1, strings.Count(out.String(), "\n"))
		out.Reset()
		l.Info("short", "err", errors.New("x"), "took", time.Second)
		require.NotContains(t, out.String(), "bytes")
	}
}

// TestLogOfRepeats: a message that is repeated without end is written at a bounded rate; others and
// records for debugging are not held back.
func TestLogOfRepeats(t *testing.T) {
	var out bytes.Buffer
	l, err := telemetry.NewLogger(&out, telemetry.LogSettings{Level: "debug", Format: "json"})
	require.NoError(t, err)
	now := time.Unix(1, 0)
	say := func(level slog.Level, message string, n int) {
		for range n {
			require.NoError(t, l.With("i", n).Handler().Handle(t.Context(), slog.NewRecord(now, level, message, 0)))
		}
	}
	lines := func() int { return strings.Count(out.String(), "\n") }
	say(slog.LevelWarn, "a rule failed", 1000)
	require.Equal(t, 100, lines())
	say(slog.LevelInfo, "ready", 1)
	say(slog.LevelDebug, "read", 500)
	require.Equal(t, 601, lines())
	now = now.Add(time.Second)
	out.Reset()
	say(slog.LevelWarn, "a rule failed", 1000)
	require.Equal(t, 10, lines())
	var first struct {
		LeftOut int `json:"left_out"`
	}
	require.NoError(t, json.NewDecoder(&out).Decode(&first))
	require.Equal(t, 900, first.LeftOut)
}
