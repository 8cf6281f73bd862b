package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// TestResplit: the sources stay claimed, and what was done of the old split is garbage.
func TestResplit(t *testing.T) {
	m, sp := aSplit(t)
	m, err := m.BeginSplit(at(5*minute), sp)
	require.NoError(t, err)
	done := sliced(blk(key.L2h, 0, 6*minute, 3*sec), 1, 3)
	m, err = m.SliceDone(at(7*minute), sp.ID, done)
	require.NoError(t, err)
	before := m
	finer := catalog.Split{ID: id(8 * minute), Level: sp.Level, Window: sp.Window, Of: 6}
	m, err = m.Resplit(at(8*minute), sp.ID, finer)
	require.NoError(t, err)
	_, err = catalog.Encode(m)
	require.NoError(t, err)
	require.Len(t, m.Splits, 1)
	assert.Equal(t, finer.ID, m.Splits[0].ID)
	assert.Equal(t, before.Splits[0].Sources, m.Splits[0].Sources)
	assert.Empty(t, m.Splits[0].Done)
	assert.Equal(t, before.Blocks, m.Blocks)
	assert.Equal(t, before.Consumed, m.Consumed)
	require.Len(t, m.Retired, len(before.Retired)+1)
	_, err = m.SliceDone(at(8*minute), sp.ID, sliced(blk(key.L2h, 0, 7*minute, 3*sec), 0, 3))
	require.ErrorIs(t, err, catalog.ErrConflict, "the old slices that are still being made come to nothing")

	_, err = m.Resplit(at(8*minute), sp.ID, catalog.Split{ID: id(9 * minute), Level: sp.Level, Window: sp.Window, Of: 12})
	require.ErrorIs(t, err, catalog.ErrConflict, "the split is gone")
	for _, bad := range []catalog.Split{
		{ID: id(9 * minute), Level: sp.Level, Window: sp.Window, Of: 6},
		{ID: id(9 * minute), Level: key.Part, Window: sp.Window, Of: 12},
		{ID: id(9 * minute), Level: sp.Level, Window: win(1), Of: 12},
	} {
		_, err = m.Resplit(at(9*minute), finer.ID, bad)
		require.ErrorIs(t, err, catalog.ErrInvalid)
	}
	_, err = m.Resplit(at(60*minute), finer.ID, catalog.Split{ID: id(9 * minute), Level: sp.Level, Window: sp.Window, Of: 12})
	require.ErrorIs(t, err, catalog.ErrConflict, "it was known too long ago what the split is")
}
