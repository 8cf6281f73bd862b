package catalog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

func TestAdd(t *testing.T) {
	live := blk(key.L2h, 0, 5*minute, 2*sec)
	m := chain(t, replace(5*minute, segments(sid(0, sec)), live))
	b := blk(key.L2h, 0, 6*minute, sec)
	next, err := m.Add(at(6*minute), b)
	require.NoError(t, err)
	require.ElementsMatch(t, []catalog.Block{live, b}, next.Blocks)
	require.Len(t, m.Blocks, 1, "a transition leaves its receiver alone")

	of := func(change func(*catalog.Block)) catalog.Block {
		x := b
		x.ID = id(6*minute, 9)
		change(&x)
		return x
	}
	for _, tc := range []struct {
		name string
		b    catalog.Block
		want error
	}{
		{"the same again", of(func(*catalog.Block) {}), catalog.ErrConflict},
		{"a slice of it", of(func(x *catalog.Block) { x.Slice = catalog.Slice{Index: 1, Of: 2} }), catalog.ErrConflict},
		{"in a longer window", of(func(x *catalog.Block) { x.Level, x.Window = key.L24h, key.L24h.WindowOf(int64(x.Window)) }), catalog.ErrConflict},
		{"known", b, catalog.ErrConflict},
		{"of another rank", of(func(x *catalog.Block) { x.Rank = id(0, 9) }), nil},
		{"of another window", of(func(x *catalog.Block) { *x = blk(key.L2h, 1, 6*minute, sec) }), nil},
		{"too late", of(func(x *catalog.Block) { x.ID, x.Rank = id(6*minute-catalog.MaxJobAge-time.Second), id(0, 9) }), catalog.ErrConflict},
		{"of nothing", of(func(x *catalog.Block) { x.Series, x.Samples, x.Bytes = 0, 0, 0 }), catalog.ErrInvalid},
		{"with tombstones of the future", of(func(x *catalog.Block) { x.Rank, x.DeletesThrough = id(0, 9), id(6*minute) }), catalog.ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := next.Add(at(6*minute), tc.b)
			require.ErrorIs(t, err, tc.want)
		})
	}
}

func TestSlicesWithin(t *testing.T) {
	whole := catalog.Slice{}
	s := func(i, of int) catalog.Slice { return catalog.Slice{Index: i, Of: of} }
	for _, tc := range []struct {
		a, b           catalog.Slice
		shares, within bool
	}{
		{whole, whole, true, true},
		{s(0, 2), whole, true, true},
		{whole, s(0, 2), true, false},
		{s(0, 1), whole, true, true},
		{s(1, 4), s(0, 2), true, true},
		{s(2, 4), s(0, 2), false, false},
		{s(0, 2), s(1, 4), true, false},
		{s(3, 4), s(3, 4), true, true},
	} {
		require.Equal(t, tc.shares, tc.a.Shares(tc.b), "%s %s", tc.a, tc.b)
		require.Equal(t, tc.within, tc.a.Within(tc.b), "%s %s", tc.a, tc.b)
	}
}
