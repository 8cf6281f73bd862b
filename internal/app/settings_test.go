package app_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/ingest"
)

// TestQueriesEndBeforeWhatTheyReadIsDeleted: a longer query would find objects missing.
func TestQueriesEndBeforeWhatTheyReadIsDeleted(t *testing.T) {
	s := defaults()
	s.Process.Store = t.TempDir()
	s.Query.Query.Timeout = s.Compact.DeletionDelay
	err := app.Run(t.Context(), s, io.Discard, slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "check settings: query.timeout: want less than compactor.deletion-delay (15m0s), after which replaced objects are deleted, got 15m0s")
}

// TestFlushesEndBeforeSegmentsAreMerged: a segment that appears later, with an earlier time, may be
// hidden by a merge of others. In a directory no segment does.
func TestFlushesEndBeforeSegmentsAreMerged(t *testing.T) {
	for _, mode := range []ingest.Mode{ingest.Direct, ingest.Grouped} {
		s := defaults()
		s.Ingest.Mode, s.Compact.SettleDelay, s.Process.Store = mode, 30*time.Second, "s3://bucket/prefix"
		require.EqualError(t, s.Validate(), "ingest.flush-timeout: want less than compactor.settle-delay (30s), after which this process merges segments of a bucket, so that no merge overlooks a segment that is still being written, got 30s")
		s.Ingest.FlushTimeout = 29 * time.Second
		require.NoError(t, s.Validate())
		s.Ingest.FlushTimeout, s.Compaction.Enabled = 30*time.Second, false
		require.NoError(t, s.Validate())
		s.Compaction.Enabled = true
		for _, dir := range []string{"data", "file:///data"} {
			s.Process.Store = dir
			require.NoError(t, s.Validate(), dir)
		}
	}
}
