package cost

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
)

// TestMeasure compares counts with their known values: a host sends 507 series every 15 s in two
// requests, for half an hour.
func TestMeasure(t *testing.T) {
	for _, tc := range []struct {
		mode     string
		segments float64
	}{
		{"direct", 240},
		// 24 batches, each of five scrapes, which lie in four periods of the queue
		{"buffered", 96},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			c, err := capture.Open("")
			require.NoError(t, err)
			hosts, err := fleet.New(c, 1)
			require.NoError(t, err)
			l, err := newLake(&Flags{Mode: tc.mode, Batch: 300, Messages: 10, Interval: 15 * time.Second, Span: 30 * time.Minute, Dir: t.TempDir()})
			require.NoError(t, err)
			r, err := l.measure(t.Context(), hosts)
			require.NoError(t, err)
			require.EqualValues(t, 240, r.Requests)
			require.EqualValues(t, 120*507, r.Samples)
			require.InDelta(t, tc.segments, float64(r.Samples)/r.SamplesPerSegment, 1e-6)
			require.InDelta(t, tc.segments, r.IngestStoreRequests["put"], 1e-6)
			require.Equal(t, tc.mode == "buffered", r.QueueBytesPerSample > 0)
			require.Positive(t, r.RequestCPUPerMillion)
			require.Positive(t, r.Compaction.CPUPerMillion)
			require.GreaterOrEqual(t, r.Compaction.Rewrites, 1.0)
			require.NotEmpty(t, r.Compaction.Jobs)
		})
	}
}
