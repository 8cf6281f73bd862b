package ingestapp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/ingest"
)

func TestChooseMode(t *testing.T) {
	for _, tc := range []struct {
		name        string
		queue       bool
		function    bool
		concurrency int
		want        ingest.Mode
	}{
		{"process", false, false, 1, ingest.Grouped},
		{"process with a queue", true, false, 1, ingest.Grouped},
		{"function", false, true, 1, ingest.Direct},
		{"function with a queue", true, true, 1, ingest.Buffered},
		{"managed instance", true, true, 10, ingest.Grouped},
	} {
		require.Equal(t, tc.want, chooseMode(tc.queue, tc.function, tc.concurrency), tc.name)
	}
	for _, mode := range []ingest.Mode{ingest.Direct, ingest.Buffered} {
		require.Equal(t, mode, resolved(ingest.Settings{Mode: mode}, 0, nil).Mode, "what is set is kept")
	}
}
