package catalog_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memstore"
)

// begun writes a segment of the n-th window with a ULID of now.
func begun(t *testing.T, store *memstore.Store, n int) catalog.SegmentID {
	t.Helper()
	s := catalog.SegmentID{Window: win(n), ID: ulid.MustNew(uint64(time.Now().UnixMilli()), nil)}
	put(t, store, s.Key("a").String(), "x")
	return s
}

// block is a block of rank s, whose job begins now.
func block(s catalog.SegmentID) catalog.Block {
	return catalog.Block{
		Level: key.Part, Window: s.Window, ID: ulid.MustNew(uint64(time.Now().UnixMilli()), nil), Rank: s.ID, MinT: int64(s.Window), MaxT: int64(s.Window),
		Series: 1, Samples: 1, Bytes: 1,
	}
}

// state is what a snapshot shows.
type state struct {
	segments []catalog.SegmentID
	blocks   int
	deletes  int
}

func asOf(t *testing.T, store catalog.Reader, when time.Time) state {
	t.Helper()
	snap, err := catalog.TakeAsOf(t.Context(), store, "a", when, 0, key.MaxTime)
	require.NoError(t, err)
	s := state{blocks: len(snap.Blocks), deletes: len(snap.Tombstones)}
	for _, seg := range snap.Segments {
		s.segments = append(s.segments, seg.SegmentID())
	}
	return s
}

func TestTimeTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		pause := func() time.Time { time.Sleep(time.Minute); defer time.Sleep(time.Minute); return time.Now() }
		empty := pause()
		a := begun(t, store, 0)
		one := pause()
		b := begun(t, store, 0)
		two := pause()
		commit(t, store, replace(time.Since(t0), segments(a, b), block(b)))
		merged := pause()
		c := begun(t, store, 1)
		commit(t, store, del(time.Since(t0), 0, key.MaxTime))
		deleted := pause()
		commit(t, store, replace(time.Since(t0), segments(c)))
		now := pause()

		want := map[time.Time]state{
			empty: {}, one: {segments: []catalog.SegmentID{a}}, two: {segments: []catalog.SegmentID{a, b}},
			merged: {blocks: 1}, deleted: {segments: []catalog.SegmentID{c}, blocks: 1, deletes: 1}, now: {blocks: 1, deletes: 1},
			now.Add(time.Hour): {blocks: 1, deletes: 1},
		}
		for when, s := range want {
			require.Equal(t, s, asOf(t, store, when), "%s", when.Sub(empty))
		}

		// The consuming commit is now old enough, the later ones are not.
		n, err := catalog.PruneHistory(t.Context(), store, "a", now.Sub(merged)+30*time.Second)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		for when, s := range want {
			if !when.Before(merged) {
				require.Equal(t, s, asOf(t, store, when), "%s", when.Sub(empty))
				continue
			}
			_, err := catalog.TakeAsOf(t.Context(), store, "a", when, 0, key.MaxTime)
			require.ErrorIs(t, err, catalog.ErrTooOld)
			require.ErrorContains(t, err, two.Add(time.Minute).UTC().Format(time.RFC3339))
		}
		snap, err := catalog.TakeAsOf(t.Context(), store, "a", empty, 1, 0)
		require.NoError(t, err)
		require.Equal(t, catalog.Snapshot{Tenant: "a"}, snap)
	})
}

// TestPruneHistory plays the life of a consumed segment through.
func TestPruneHistory(t *testing.T) {
	const delay = 15 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		prune := func() catalog.Manifest {
			t.Helper()
			_, err := catalog.PruneHistory(t.Context(), store, "a", delay)
			require.NoError(t, err)
			m, _, err := catalog.ReadManifest(t.Context(), store, "a")
			require.NoError(t, err)
			return m
		}
		require.Equal(t, catalog.Empty(), prune(), "no manifest")
		a := begun(t, store, 0)
		m := commit(t, store, replace(time.Since(t0), segments(a), block(a)))
		time.Sleep(delay - time.Millisecond)
		require.Equal(t, uint64(1), prune().Generation, "too early")
		time.Sleep(2 * time.Millisecond)
		m2 := prune()
		require.Equal(t, catalog.Point{Generation: 1, ID: m.ID}, m2.Oldest.Point)
		require.Equal(t, m2.ID, prune().ID, "once is enough")
		time.Sleep(delay - time.Millisecond)
		require.Zero(t, m2.Deletable(time.Now(), delay), "it may just have been found in an older manifest")
		time.Sleep(2 * time.Millisecond)
		require.Equal(t, segments(a), m2.Deletable(time.Now(), delay))
		require.Equal(t, m2.ID, prune().ID, "what may be deleted comes before the next floor")
		require.NoError(t, store.Delete(t.Context(), a.Key("a").String()))
		commit(t, store, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			return m.Forget([]catalog.SegmentID{a}, nil)
		})
		time.Sleep(delay - time.Millisecond)
		require.Len(t, prune().Consumed, 1)
		time.Sleep(2 * time.Millisecond)
		last := prune()
		require.Empty(t, last.Consumed)
		for range 3 {
			time.Sleep(time.Hour)
			require.Equal(t, last.ID, prune().ID, "what is idle stays as it is")
		}
		// A committer that slept since the beginning copies what it had read.
		put(t, store, key.ManifestCopy("a", ulid.ULID{}), mustEncode(t, catalog.Empty()))
		_, err := catalog.TakeAsOf(t.Context(), store, "a", t0.AddDate(-100, 0, 0), 0, key.MaxTime)
		require.ErrorIs(t, err, catalog.ErrTooOld, "it is no part of history again")
		prune()
		require.NotContains(t, store.Keys(), key.ManifestCopy("a", ulid.ULID{}))
	})
}

func mustEncode(t *testing.T, m catalog.Manifest) string {
	t.Helper()
	b, err := catalog.Encode(m)
	require.NoError(t, err)
	return string(b)
}

// TestPruneHistoryOfDeletes: manifests that superseded nothing are pruned when there are many.
func TestPruneHistoryOfDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		for i := range 40 {
			commit(t, store, del(time.Since(t0), 0, 1))
			time.Sleep(time.Hour)
			_, err := catalog.PruneHistory(t.Context(), store, "a", time.Minute)
			require.NoError(t, err)
			require.Less(t, len(store.Keys()), 36, "after %d", i)
		}
	})
}

// TestTakeAsOfWhilePruned: the manifest that was chosen is pruned before it is read.
func TestTakeAsOfWhilePruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store *memstore.Store
		armed := false
		store = newStore(t, func(c memstore.Call) memstore.Fault {
			if armed && c.Op == memstore.Get && strings.HasPrefix(c.Key, key.ManifestsPrefix("a")) {
				armed = false
				n, err := catalog.PruneHistory(t.Context(), store, "a", time.Minute)
				require.NoError(t, err)
				require.Equal(t, 2, n)
			}
			return memstore.Fault{}
		})
		commit(t, store, tick(0))
		first := time.Now()
		time.Sleep(time.Second)
		commit(t, store, tick(1))
		time.Sleep(time.Hour)
		armed = true
		_, err := catalog.TakeAsOf(t.Context(), store, "a", first, 0, key.MaxTime)
		require.ErrorIs(t, err, catalog.ErrTooOld)
		require.False(t, armed)
	})
}
