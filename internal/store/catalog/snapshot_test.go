package catalog_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// listing is a store of keys without a manifest. It counts how many keys were read.
type listing struct {
	keys []string
	read int
	err  error // yielded at the end
}

func (l *listing) Get(context.Context, string, int64, int64) (io.ReadCloser, objstore.Object, error) {
	return nil, objstore.Object{}, objstore.ErrNotFound
}

func (l *listing) List(_ context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		slices.Sort(l.keys)
		for _, k := range l.keys {
			if !strings.HasPrefix(k, prefix) || k <= startAfter {
				continue
			}
			l.read++
			if !yield(objstore.Object{Key: k, Size: 7, ETag: "e"}, nil) {
				return
			}
		}
		if l.err != nil {
			yield(objstore.Object{}, l.err)
		}
	}
}

// seg is the key of the segment with the n-th id in the window that holds t (ms).
func seg(tenant string, t int64, n uint64) string {
	var id ulid.ULID
	if err := id.SetTime(n); err != nil {
		panic(err)
	}
	return key.Segment{Tenant: tenant, Window: key.WindowOf(t), ID: id}.String()
}

func TestTake(t *testing.T) {
	keys := []string{
		seg("a", 0, 9), seg("a", w, 3), seg("a", w, 5), seg("a", 2*w, 4), seg("a", 3*w, 1), seg("a", -w, 8),
		seg("a", key.MaxTime, 6), seg("a", key.MinTime, 7), seg("ab", w, 2),
		key.WindowPrefix("a", key.Window(w)) + "notes.txt", key.SegmentsPrefix("a") + "README",
	}
	for _, tc := range []struct {
		name       string
		mint, maxt int64
		want       []string // in order
		skipped    int
		maxRead    int
	}{
		{"one window", w, 2*w - 1, []string{seg("a", w, 3), seg("a", w, 5)}, 1, 4},
		{"inclusive end", w, 2 * w, []string{seg("a", w, 3), seg("a", 2*w, 4), seg("a", w, 5)}, 1, 5},
		{"age order across windows", 0, 3 * w, []string{seg("a", 3*w, 1), seg("a", w, 3), seg("a", 2*w, 4), seg("a", w, 5), seg("a", 0, 9)}, 1, 8},
		{"before the epoch", -1, -1, []string{seg("a", -w, 8)}, 0, 2},
		{"all of time", math.MinInt64, math.MaxInt64, []string{seg("a", 3*w, 1), seg("a", w, 3), seg("a", 2*w, 4), seg("a", w, 5), seg("a", key.MaxTime, 6), seg("a", key.MinTime, 7), seg("a", -w, 8), seg("a", 0, 9)}, 2, 10},
		{"empty range", 5, 4, nil, 0, 0},
		{"beyond what keys name", key.MaxTime + 1, math.MaxInt64, nil, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &listing{keys: keys}
			snap, err := catalog.Take(t.Context(), l, "a", tc.mint, tc.maxt)
			require.NoError(t, err)
			var got []string
			for _, s := range snap.Segments {
				got = append(got, s.String())
				require.Equal(t, int64(7), s.Size)
				require.Equal(t, "e", s.ETag)
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.skipped, snap.Skipped)
			require.LessOrEqual(t, l.read, tc.maxRead, "listing went beyond the last window")
		})
	}
}

// TestRefresh: a manifest that the store still has is not decoded again.
func TestRefresh(t *testing.T) {
	store := memstore.New(memstore.Settings{Now: func() time.Time { return at(time.Hour) }})
	none, err := catalog.Refresh(t.Context(), store, "a", catalog.Version{})
	require.NoError(t, err)
	require.Zero(t, none.Generation)
	commit := func(m catalog.Manifest) {
		b, err := catalog.Encode(m)
		require.NoError(t, err)
		put(t, store, key.Manifest("a"), string(b))
	}
	commit(chain(t, replace(5*minute, segments(sid(0, 1*sec)), blk(key.Part, 0, 5*minute, 1*sec))))
	first, err := catalog.Refresh(t.Context(), store, "a", none)
	require.NoError(t, err)
	require.Len(t, first.Blocks, 1)
	again, err := catalog.Refresh(t.Context(), store, "a", first)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Same(t, &first.Blocks[0], &again.Blocks[0])
	commit(chain(t, replace(5*minute, segments(sid(0, 1*sec)), blk(key.Part, 0, 5*minute, 1*sec)), del(7*minute, int64(win(1)), int64(win(1)))))
	later, err := catalog.Refresh(t.Context(), store, "a", first)
	require.NoError(t, err)
	want, etag, err := catalog.ReadManifest(t.Context(), store, "a")
	require.NoError(t, err)
	require.Equal(t, catalog.Version{Manifest: want, ETag: etag}, later)
	require.Len(t, later.Tombstones, 1)
}

func TestTakeFails(t *testing.T) {
	boom := errors.New("boom")
	_, err := catalog.Take(t.Context(), &listing{err: boom}, "a", 0, 1)
	require.ErrorIs(t, err, boom)
}

// TestTakeOverlapping takes the parts of a manifest that overlap, and no segment that it consumed.
func TestTakeOverlapping(t *testing.T) {
	store := memstore.New(memstore.Settings{Now: func() time.Time { return at(time.Hour) }})
	for _, s := range []catalog.SegmentID{sid(0, 1*sec), sid(0, 9*sec), sid(1, 2*sec), sid(1, 8*sec)} {
		put(t, store, s.Key("a").String(), "x")
	}
	first, second := blk(key.Part, 0, 5*minute, 3*sec), blk(key.Part, 1, 5*minute, 2*sec)
	day := blk(key.L24h, 12, 6*minute, 7*sec)
	day.MinT, day.MaxT = int64(win(14)), int64(win(15))
	metadata := blk(key.L24h, 0, 6*minute, 1*sec)
	metadata.MinT, metadata.MaxT = 1, 0
	m := chain(t,
		replace(5*minute, segments(sid(0, 1*sec), sid(0, 3*sec)), first), replace(5*minute, segments(sid(1, 2*sec)), second),
		replace(6*minute, segments(sid(12, 7*sec)), day), replace(6*minute, segments(sid(2, 1*sec)), metadata),
		del(7*minute, int64(win(1)), int64(win(1))), del(8*minute, int64(win(13)), int64(win(14))))
	b, err := catalog.Encode(m)
	require.NoError(t, err)
	put(t, store, key.Manifest("a"), string(b))
	for _, tc := range []struct {
		name       string
		mint, maxt int64
		segments   []catalog.SegmentID
		blocks     []catalog.Block // in order
		tombstones []catalog.Tombstone
	}{
		{"all of time", math.MinInt64, math.MaxInt64, []catalog.SegmentID{sid(0, 9*sec), sid(1, 8*sec)}, []catalog.Block{metadata, second, first, day}, m.Tombstones},
		{"before all", 0, int64(win(0)) - 1, nil, nil, nil},
		{"one window", int64(win(0)), int64(win(1)) - 1, []catalog.SegmentID{sid(0, 9*sec)}, []catalog.Block{metadata, first}, nil},
		{"up to the beginning of a block", 0, first.MinT, []catalog.SegmentID{sid(0, 9*sec)}, []catalog.Block{metadata, first}, nil},
		{"from the end of a block", second.MaxT, int64(win(2)), []catalog.SegmentID{sid(1, 8*sec)}, []catalog.Block{metadata, second}, nil},
		{"in a block's window before its samples", int64(win(13)), int64(win(14)) - 1, nil, nil, m.Tombstones[1:]},
		{"in a block", int64(win(14)), int64(win(14)), nil, []catalog.Block{day}, m.Tombstones[1:]},
		{"on a tombstone", int64(win(1)), int64(win(1)), []catalog.SegmentID{sid(1, 8*sec)}, []catalog.Block{metadata, second}, m.Tombstones[:1]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			snap, err := catalog.Take(t.Context(), store, "a", tc.mint, tc.maxt)
			require.NoError(t, err)
			var got []catalog.SegmentID
			for _, s := range snap.Segments {
				got = append(got, s.SegmentID())
			}
			require.Equal(t, tc.segments, got)
			require.Equal(t, tc.blocks, snap.Blocks)
			require.Equal(t, tc.tombstones, snap.Tombstones)
			require.Equal(t, m.ID, snap.Manifest.ID)
		})
	}
}

func TestTenants(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	for _, k := range []string{"v1/b/manifest.json", "v1/b/segments/x", "v1/a!/x", "v1/a/x", "v1/a0/x", "v1/ab/x/y", "v1/stray", "v2/z/x", "v/q/x"} {
		put(t, store, k, "x")
	}
	got, err := catalog.Tenants(t.Context(), store)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a!", "a0", "ab", "b"}, got)

	boom := errors.New("boom")
	_, err = catalog.Tenants(t.Context(), memstore.New(memstore.Settings{Faults: func(memstore.Call) memstore.Fault { return memstore.Fault{Err: boom} }}))
	require.ErrorIs(t, err, boom)
}

func put(t *testing.T, store objstore.Store, k, value string) {
	t.Helper()
	_, err := store.Put(t.Context(), k, strings.NewReader(value), objstore.Condition{})
	require.NoError(t, err)
}

// TestOrderWithinTick: of two segments that the store got in one tick of its clock, the one with
// the later ULID has the higher rank, also where the lowest bits of its time overflow.
func TestOrderWithinTick(t *testing.T) {
	const overflow = 1 << 30 // ms
	for _, wrong := range []time.Duration{0, time.Hour, -time.Hour, 5 * 24 * time.Hour, -5 * 24 * time.Hour} {
		at := time.UnixMilli(1600 * overflow)
		store := memstore.New(memstore.Settings{Resolution: time.Second, Now: func() time.Time { return at.Add(wrong) }})
		var want []string
		for _, ms := range []uint64{1600*overflow - 2, 1600*overflow - 1, 1600 * overflow, 1600*overflow + 1} {
			want = append(want, seg("a", 0, ms))
		}
		for _, k := range slices.Backward(want) {
			put(t, store, k, "x")
		}
		require.Equal(t, want, ranked(t, store), "a clock that is wrong by %s", wrong)
	}
	// A store without times.
	l := &listing{keys: []string{seg("a", 0, 7), seg("a", 0, 3*overflow+1), seg("a", 0, 2*overflow+5)}}
	require.Equal(t, []string{seg("a", 0, 7), seg("a", 0, 2*overflow+5), seg("a", 0, 3*overflow+1)}, ranked(t, l))
}

// ranked returns the keys of the segments by rank.
func ranked(t *testing.T, store catalog.Reader) (keys []string) {
	t.Helper()
	s, err := catalog.Take(t.Context(), store, "a", 0, 1)
	require.NoError(t, err)
	for _, r := range s.Segments {
		keys = append(keys, r.String())
	}
	return keys
}
