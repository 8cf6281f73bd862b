package probe_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
)

// BenchmarkRoot checks the root of a directory, as each request and each listing does.
func BenchmarkRoot(b *testing.B) {
	files, err := filestore.New(b.TempDir())
	require.NoError(b, err)
	s, err := probe.NewRooted(b.Context(), files, files, slog.New(slog.DiscardHandler), (&clock{}).now)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, s.Root(b.Context()))
	}
}
