package ingestapp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/ingest"
)

func TestChooseMode(t *testing.T) {
	for _, tc := range []struct {
		name        string
		mode        string
		queue       bool
		function    bool
		concurrency int
		want        ingest.Mode
	}{
		{"process", "auto", false, false, 1, ingest.Grouped},
		{"process with a queue", "auto", true, false, 1, ingest.Grouped},
		{"function", "auto", false, true, 1, ingest.Direct},
		{"function with a queue", "auto", true, true, 1, ingest.Buffered},
		{"managed instance", "auto", true, true, 10, ingest.Grouped},
		{"said", "direct", true, true, 10, ingest.Direct},
		{"said without what it needs", "buffered", false, false, 1, ingest.Buffered},
	} {
		require.Equal(t, tc.want, chooseMode(tc.mode, tc.queue, tc.function, tc.concurrency), tc.name)
	}
}
