package app_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app"
)

// TestQueriesEndBeforeWhatTheyReadIsDeleted: a longer query would find objects missing.
func TestQueriesEndBeforeWhatTheyReadIsDeleted(t *testing.T) {
	s := defaults()
	s.Process.Store = t.TempDir()
	s.Query.Query.Timeout = s.Compact.DeletionDelay
	err := app.Run(t.Context(), s, io.Discard, slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "check settings: query.timeout: want less than compactor.deletion-delay (15m0s), after which replaced objects are deleted, got 15m0s")
}
