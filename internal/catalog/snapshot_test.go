package catalog_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
)

// listing is a sorted list of keys that counts how many were read.
type listing struct {
	keys []string
	read int
	err  error // yielded at the end
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
	const w = key.WindowMillis
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

func TestTakeFails(t *testing.T) {
	boom := errors.New("boom")
	_, err := catalog.Take(t.Context(), &listing{err: boom}, "a", 0, 1)
	require.ErrorIs(t, err, boom)
}
