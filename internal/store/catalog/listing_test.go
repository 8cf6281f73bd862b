package catalog_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestListingWithManifest: a listing and the manifest make the snapshot that Take takes, and serve
// for another manifest after that.
func TestListingWithManifest(t *testing.T) {
	store := memstore.New(memstore.Settings{Now: func() time.Time { return at(time.Hour) }})
	for _, s := range []catalog.SegmentID{sid(0, 1*sec), sid(0, 9*sec), sid(1, 2*sec)} {
		put(t, store, s.Key("a").String(), "x")
	}
	m := chain(t, replace(5*minute, segments(sid(0, 1*sec)), blk(key.Part, 0, 5*minute, 1*sec)), del(7*minute, int64(win(1)), int64(win(1))))
	b, err := catalog.Encode(m)
	require.NoError(t, err)
	put(t, store, key.Manifest("a"), string(b))
	want, err := catalog.Take(t.Context(), store, "a", math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	l, err := catalog.List(t.Context(), store, "a", math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	empty := l.With(catalog.Empty())
	require.Len(t, empty.Segments, 3)
	require.Empty(t, empty.Blocks)
	got, _, err := catalog.ReadManifest(t.Context(), store, "a")
	require.NoError(t, err)
	require.Equal(t, want, l.With(got))
	require.Len(t, empty.Segments, 3, "as it was")
	require.Len(t, l.With(catalog.Empty()).Segments, 3)

	for _, known := range []catalog.Manifest{catalog.Empty(), m, got} { // all are got or earlier
		live, err := catalog.ListLive(t.Context(), store, "a", math.MinInt64, math.MaxInt64, known)
		require.NoError(t, err)
		require.Equal(t, want, live.With(got))
		require.Len(t, live.With(catalog.Empty()).Segments, 3-len(known.Consumed))
	}

	none, err := catalog.List(t.Context(), store, "a", 5, 4)
	require.NoError(t, err)
	require.Equal(t, catalog.Snapshot{Tenant: "a"}, none.With(m))
}

// TestNarrow: a part of a snapshot is the snapshot of that part.
func TestNarrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	store := memstore.New(memstore.Settings{})
	m := catalog.Empty()
	for i := range 60 {
		var id ulid.ULID
		require.NoError(t, id.SetTime(uint64(i+1)))
		w := win(rng.IntN(12))
		put(t, store, key.Segment{Tenant: "a", Window: w, ID: id}.String(), "x")
		from := int64(w) + rng.Int64N(key.WindowMillis)
		m.Blocks = append(m.Blocks, catalog.Block{Level: key.Part, Window: w, ID: id, Rank: id, MinT: from, MaxT: from + rng.Int64N(100)})
		m.Tombstones = append(m.Tombstones, catalog.Tombstone{ID: id, MinT: from, MaxT: from + rng.Int64N(2*key.WindowMillis)})
	}
	take := func(mint, maxt int64) catalog.Snapshot {
		l, err := catalog.List(t.Context(), store, "a", mint, maxt)
		require.NoError(t, err)
		return l.With(m)
	}
	for range 300 {
		a, b := int64(win(0))+rng.Int64N(13*key.WindowMillis), int64(win(0))+rng.Int64N(13*key.WindowMillis)
		c, d := a-rng.Int64N(key.WindowMillis), b+rng.Int64N(key.WindowMillis)
		require.Equal(t, take(a, b), take(min(a, c), max(b, d)).Narrow(a, b))
	}
}
