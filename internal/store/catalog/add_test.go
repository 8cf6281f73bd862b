package catalog_test

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

func TestAdd(t *testing.T) {
	live := blk(key.L2h, 0, 5*minute, 2*sec)
	m := chain(t, replace(5*minute, segments(sid(0, sec)), live))
	b := blk(key.L2h, 0, 6*minute, sec)
	next, err := m.Add(at(6*minute), b, []string{"a", "b"}, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []catalog.Block{live, b}, next.Blocks)
	require.Equal(t, []catalog.Import{catalog.ImportOf(b, []string{"a", "b"})}, next.Imports)
	require.Len(t, m.Blocks, 1, "a transition leaves its receiver alone")

	of := func(change func(*catalog.Block)) catalog.Block {
		x := b
		x.ID = id(6*minute, 9)
		change(&x)
		return x
	}
	same := of(func(*catalog.Block) {})
	for _, tc := range []struct {
		name     string
		b        catalog.Block
		inputs   []string
		recorded []ulid.ULID
		want     error
	}{
		{"the same again", same, []string{"a", "b"}, nil, catalog.ErrConflict},
		{"one input again", same, []string{"b", "c"}, nil, catalog.ErrConflict},
		{"another input", same, []string{"c"}, nil, nil},
		{"after the record of the first", same, []string{"b"}, []ulid.ULID{b.ID}, nil},
		{"a slice of it", of(func(x *catalog.Block) { x.Slice = catalog.Slice{Index: 1, Of: 2} }), []string{"a"}, nil, catalog.ErrConflict},
		{"in a longer window", of(func(x *catalog.Block) { x.Level, x.Window = key.L24h, key.L24h.WindowOf(int64(x.Window)) }), []string{"a"}, nil, catalog.ErrConflict},
		{"known", b, []string{"c"}, nil, catalog.ErrConflict},
		{"of another window", of(func(x *catalog.Block) { *x = blk(key.L2h, 1, 6*minute, sec) }), []string{"a"}, nil, nil},
		{"too late", of(func(x *catalog.Block) { x.ID = id(6*minute - catalog.MaxJobAge - time.Second) }), []string{"c"}, nil, catalog.ErrConflict},
		{"of nothing", of(func(x *catalog.Block) { x.Series, x.Samples, x.Bytes = 0, 0, 0 }), []string{"c"}, nil, catalog.ErrInvalid},
		{"of no input", same, nil, nil, catalog.ErrInvalid},
		{"of inputs without order", same, []string{"d", "c"}, nil, catalog.ErrInvalid},
		{"with tombstones of the future", of(func(x *catalog.Block) { x.DeletesThrough = id(6 * minute) }), []string{"c"}, nil, catalog.ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := next.Add(at(6*minute), tc.b, tc.inputs, tc.recorded)
			require.ErrorIs(t, err, tc.want)
		})
	}
	require.Empty(t, next.Recorded([]ulid.ULID{b.ID, id(0)}).Imports)
	require.Empty(t, next.Clear(at(7*minute), nil).Imports)
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
