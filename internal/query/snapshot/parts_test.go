package snapshot

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// randomSnapshot has objects and tombstones in twelve windows.
func randomSnapshot(rng *rand.Rand) catalog.Snapshot {
	s := catalog.Snapshot{Tenant: "a"}
	for i := range 20 {
		var id ulid.ULID
		id[0] = byte(i)
		w := key.Window(rng.Int64N(12) * key.WindowMillis)
		from := int64(w) + rng.Int64N(key.WindowMillis)
		s.Segments = append(s.Segments, catalog.SegmentRef{Segment: key.Segment{Tenant: "a", Window: w, ID: id}, Rank: id})
		b := catalog.Block{Level: key.Part, Window: w, ID: id, Rank: id, MinT: from, MaxT: from + rng.Int64N(100)}
		if i == 0 { // it has metadata only
			b.MinT, b.MaxT = 1, 0
		}
		s.Blocks = append(s.Blocks, b)
		s.Tombstones = append(s.Tombstones, catalog.Tombstone{ID: id, MinT: from, MaxT: from + rng.Int64N(2*key.WindowMillis)})
	}
	return s
}

// TestPartsAreNarrowSnapshots: what reads share is what they would take alone, at the ends of
// objects as well.
func TestPartsAreNarrowSnapshots(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		all := &aged{Snapshot: randomSnapshot(rng), span: span{key.MinTime, key.MaxTime}}
		time := func() int64 {
			at := rng.Int64N(13 * key.WindowMillis)
			switch i := rng.IntN(len(all.Blocks)); rng.IntN(4) {
			case 0:
				at = all.Blocks[i].MinT
			case 1:
				at = all.Blocks[i].MaxT
			case 2:
				at = all.Tombstones[i].MaxT
			}
			return at + rng.Int64N(3) - 1
		}
		for range 200 {
			a, b := time(), time()
			if a > b {
				a, b = b, a
			}
			require.Equal(t, all.Narrow(a, b), *all.narrow(a, b))
			require.LessOrEqual(t, len(all.parts.last), maxParts)
		}
	}
}

// TestPartsAreShared: windows that move on share the memory of a part while the objects are the
// same, also while others ask for other windows.
func TestPartsAreShared(t *testing.T) {
	s := catalog.Snapshot{Tenant: "a"}
	for i := range int64(10) {
		s.Blocks = append(s.Blocks, catalog.Block{MinT: 1000 * i, MaxT: 1000*i + 999})
	}
	all := &aged{Snapshot: s, span: span{0, 9999}}
	first := all.narrow(3000, 8000)
	require.Len(t, first.Blocks, 6)
	for shift := range int64(1000) {
		require.Len(t, all.narrow(2000+shift, 7000+shift).Blocks, 6)
		next := all.narrow(3000+shift, 8000+shift)
		require.Same(t, unsafe.SliceData(first.Blocks), unsafe.SliceData(next.Blocks))
		require.Same(t, first, next)
	}
	require.NotSame(t, unsafe.SliceData(first.Blocks), unsafe.SliceData(all.narrow(4000, 9000).Blocks))
	require.Len(t, all.parts.last, 3)
}
