package catalog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// TestReplica: the manifest of a copy names what the copy has and what is not live in it, from when
// the copy superseded it, and until readers can no longer have listed it.
func TestReplica(t *testing.T) {
	const delay = 15 * minute
	block := blk(key.Part, 0, 1*minute, 1*sec)
	source := chain(t, replace(5*minute, segments(sid(0, 1*sec)), block), replace(6*minute, segments(sid(0, 2*sec), sid(0, 3*sec)), blk(key.L2h, 0, 2*minute, 3*sec)))
	source.Consumed[0].Gone = source.Generation
	stray := blk(key.L2h, 2, 1*minute, 1*sec)

	now := at(time.Hour)
	hidden := catalog.Sources{Segments: segments(sid(0, 1*sec), sid(2, 9*sec)).Segments, Blocks: blocks(stray).Blocks}
	first := source.Replica(catalog.Empty(), now, delay, nil, hidden)
	_, err := catalog.Encode(first)
	require.NoError(t, err)
	require.Equal(t, source.ID, first.ID)
	require.Equal(t, source.Blocks, first.Blocks)
	require.Len(t, first.Consumed, 4)
	for _, c := range first.Consumed {
		require.Equal(t, now.UnixMilli(), c.At, "the copy has superseded %s now", c.SegmentID)
		require.Zero(t, c.Gone, "%s is there", c.SegmentID)
	}
	since, ok := first.RetiredAt(stray.BlockID())
	require.True(t, ok)
	require.Equal(t, now.UnixMilli(), since)

	require.Equal(t, first, first.Replica(first, now.Add(delay-1), delay, nil, hidden), "nothing has changed")

	// The source's manifest no longer has a segment, which the replica deletes now: At becomes now.
	source.Consumed = source.Consumed[1:]
	deletion := now.Add(delay)
	second := source.Replica(first, deletion, delay, nil, hidden)
	since, ok = second.ConsumedAt(sid(0, 1*sec))
	require.True(t, ok)
	require.Equal(t, deletion.UnixMilli(), since)

	// It is deleted; a segment that was hidden before is live.
	alive := []catalog.SegmentID{sid(2, 9*sec)}
	third := source.Replica(second, deletion.Add(2*delay-1), delay, alive, catalog.Sources{})
	_, ok = third.ConsumedAt(sid(0, 1*sec))
	require.True(t, ok, "who has listed it may still read")
	_, ok = third.ConsumedAt(alive[0])
	require.False(t, ok)
	fourth := source.Replica(third, deletion.Add(2*delay), delay, alive, catalog.Sources{})
	_, ok = fourth.ConsumedAt(sid(0, 1*sec))
	require.False(t, ok)
}
