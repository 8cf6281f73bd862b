package message

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// TestLargestColumns packs more samples than the columns of a message may hold; they compress to
// almost nothing.
func TestLargestColumns(t *testing.T) {
	b := decoded(t, remotewrite.V1, []remotewritetest.Item{
		remotewritetest.Gauge("m", remotewritetest.At(someTime, 1)), remotewritetest.Gauge("n", remotewritetest.At(someTime, 1)),
	})
	one, other := b.Floats[0], b.Floats[1]
	b.Floats = b.Floats[:0]
	for range 500_000 {
		b.Floats = append(b.Floats, one)
	}
	for range 500_000 {
		b.Floats = append(b.Floats, other)
	}
	ms, err := Split(b, "a", time.UnixMilli(someTime), queue.MaxMessageBytes, 128)
	require.NoError(t, err)
	require.Len(t, ms, 2, "one for each series")
	for _, m := range ms {
		e, err := Parse(m.Body)
		require.NoError(t, err)
		require.Equal(t, 500_000, e.Holds.Floats)
		limits := remotewrite.DefaultLimits()
		got, err := e.Decode(remotewrite.NewGeneration(2), &limits, limit)
		require.NoError(t, err)
		require.Equal(t, 1, got.Generation.Table.Len())
	}
}
