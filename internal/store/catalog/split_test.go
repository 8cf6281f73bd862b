package catalog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// aSplit is a split of two segments and a part into three slices, and the manifest before it.
func aSplit(t *testing.T) (catalog.Manifest, catalog.Split) {
	part := blk(key.Part, 0, 4*minute, 1*sec)
	s := blocks(part)
	s.Segments = []catalog.SegmentID{sid(0, 3*sec), sid(0, 2*sec)}
	return chain(t, replace(4*minute, segments(sid(0, 1*sec)), part)),
		catalog.Split{ID: id(5 * minute), Level: key.L2h, Window: win(0), Of: 3, Sources: s}
}

func TestSplit(t *testing.T) {
	m, sp := aSplit(t)
	m, err := m.BeginSplit(at(5*minute), sp)
	require.NoError(t, err)
	require.Equal(t, []catalog.SegmentID{sid(0, 2*sec), sid(0, 3*sec)}, m.Splits[0].Sources.Segments, "sorted")
	before := m
	one, empty, three := sliced(blk(key.L2h, 0, 6*minute, 3*sec), 2, 3), catalog.Block{Level: key.L2h, Window: win(0), Slice: catalog.Slice{Index: 1, Of: 3}}, sliced(blk(key.L2h, 0, 6*minute, 3*sec), 0, 3)
	for _, b := range []catalog.Block{one, empty} {
		m, err = m.SliceDone(at(7*minute), sp.ID, b)
		require.NoError(t, err)
		require.Len(t, m.Blocks, 1, "no slice is live before the last is done")
		require.Len(t, m.Consumed, 1)
		_, err = catalog.Encode(m)
		require.NoError(t, err)
	}
	assert.Equal(t, []catalog.Block{empty, one}, m.Splits[0].Done)
	assert.Empty(t, before.Splits[0].Done, "a transition leaves its receiver alone")
	m, err = m.SliceDone(at(7*minute), sp.ID, three)
	require.NoError(t, err)
	assert.Equal(t, []catalog.Block{three, one}, m.Blocks)
	assert.Empty(t, m.Splits)
	assert.Len(t, m.Consumed, 3)
	assert.Len(t, m.Retired, 1)
}

func TestBeginSplitConflicts(t *testing.T) {
	m, sp := aSplit(t)
	began, err := m.BeginSplit(at(5*minute), sp)
	require.NoError(t, err)
	gone, err := m.Replace(at(5*minute), segments(sid(0, 2*sec)), nil)
	require.NoError(t, err)
	of := func(change func(*catalog.Split)) catalog.Split {
		s := sp
		change(&s)
		return s
	}
	for _, tc := range []struct {
		name string
		m    catalog.Manifest
		sp   catalog.Split
		now  time.Duration
		want error
	}{
		{"good", m, sp, 5 * minute, nil},
		{"begun already", began, sp, 5 * minute, catalog.ErrConflict},
		{"sources are claimed", began, of(func(s *catalog.Split) { s.ID = id(6 * minute) }), 6 * minute, catalog.ErrConflict},
		{"a source is consumed", gone, sp, 5 * minute, catalog.ErrConflict},
		{"a source is not live", m, of(func(s *catalog.Split) { s.Sources = blocks(blk(key.Part, 0, 9*minute, sec)) }), 5 * minute, catalog.ErrConflict},
		{"planned long ago", m, sp, 20*minute + time.Millisecond, catalog.ErrConflict},
		{"no id", m, of(func(s *catalog.Split) { s.ID = ulid.ULID{} }), 5 * minute, catalog.ErrInvalid},
		{"one slice", m, of(func(s *catalog.Split) { s.Of = 1 }), 5 * minute, catalog.ErrInvalid},
		{"too many slices", m, of(func(s *catalog.Split) { s.Of = catalog.MaxSlices + 1 }), 5 * minute, catalog.ErrInvalid},
		{"no sources", m, of(func(s *catalog.Split) { s.Sources = catalog.Sources{} }), 5 * minute, catalog.ErrInvalid},
		{"source of another window", m, of(func(s *catalog.Split) { s.Sources = segments(sid(1, sec)) }), 5 * minute, catalog.ErrInvalid},
		{"no such window", m, of(func(s *catalog.Split) { s.Level, s.Window = key.L24h, win(1) }), 5 * minute, catalog.ErrInvalid},
		{"a slice is done", m, of(func(s *catalog.Split) { s.Done = []catalog.Block{sliced(blk(key.L2h, 0, 6*minute, 3*sec), 0, 3)} }), 5 * minute, catalog.ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tc.m.BeginSplit(at(tc.now), tc.sp)
			require.ErrorIs(t, err, tc.want)
		})
	}
}

func TestSliceDoneConflicts(t *testing.T) {
	m, sp := aSplit(t)
	good := sliced(blk(key.L2h, 0, 6*minute, 3*sec), 0, 3)
	m, err := m.BeginSplit(at(5*minute), sp)
	require.NoError(t, err)
	m, err = m.SliceDone(at(7*minute), sp.ID, sliced(blk(key.L2h, 0, 6*minute, 3*sec), 1, 3))
	require.NoError(t, err)
	tomb := catalog.Tombstone{Matchers: job, MinT: int64(win(0)), MaxT: int64(win(0))}
	deleted, _, err := m.Delete(at(2*sec), tomb, sp.Sources.Segments)
	require.NoError(t, err)
	partly, _, err := m.Delete(at(2*sec), tomb, sp.Sources.Segments[:1])
	require.NoError(t, err)
	of := func(change func(*catalog.Block)) catalog.Block {
		b := good
		change(&b)
		return b
	}
	for _, tc := range []struct {
		name string
		m    catalog.Manifest
		id   ulid.ULID
		b    catalog.Block
		now  time.Duration
		want error
	}{
		{"good", m, sp.ID, good, 7 * minute, nil},
		{"a delete in between", deleted, sp.ID, good, 7 * minute, nil},
		{"a delete in between that covers one source", partly, sp.ID, good, 7 * minute, catalog.ErrConflict},
		{"no such split", m, id(6 * minute), good, 7 * minute, catalog.ErrConflict},
		{"slice is done", m, sp.ID, sliced(blk(key.L2h, 0, 6*minute, 3*sec), 1, 3), 7 * minute, catalog.ErrConflict},
		{"job is too old", m, sp.ID, good, 22 * minute, catalog.ErrConflict},
		{"block is known", m, sp.ID, of(func(b *catalog.Block) { b.ID = m.Splits[0].Done[0].ID }), 7 * minute, catalog.ErrConflict},
		{"another rank than the other slice", m, sp.ID, of(func(b *catalog.Block) { b.Rank = id(9 * sec) }), 7 * minute, catalog.ErrInvalid},
		{"no slice", m, sp.ID, of(func(b *catalog.Block) { b.Slice = catalog.Slice{} }), 7 * minute, catalog.ErrInvalid},
		{"slice of another split", m, sp.ID, sliced(good, 0, 4), 7 * minute, catalog.ErrInvalid},
		{"another level", m, sp.ID, of(func(b *catalog.Block) { b.Level = key.Part }), 7 * minute, catalog.ErrInvalid},
		{"another window", m, sp.ID, sliced(blk(key.L2h, 1, 6*minute, 3*sec), 0, 3), 7 * minute, catalog.ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tc.m.SliceDone(at(tc.now), tc.id, tc.b)
			require.ErrorIs(t, err, tc.want)
		})
	}
}

// TestExpiredSplit: a split ends with its sources, and what its slices left is garbage.
func TestExpiredSplit(t *testing.T) {
	m, sp := aSplit(t)
	m, err := m.BeginSplit(at(5*minute), sp)
	require.NoError(t, err)
	done := sliced(blk(key.L2h, 0, 6*minute, 3*sec), 1, 3)
	m, err = m.SliceDone(at(7*minute), sp.ID, done)
	require.NoError(t, err)
	gone, err := m.Expire(at(8*minute), sp.Sources)
	require.NoError(t, err)
	assert.Empty(t, gone.Splits)
	assert.True(t, slices.ContainsFunc(gone.Retired, func(r catalog.Retired) bool { return r.BlockID == done.BlockID() }))
	_, err = gone.SliceDone(at(8*minute), sp.ID, sliced(done, 0, 3))
	require.ErrorIs(t, err, catalog.ErrConflict, "the slices that are still being made come to nothing")
	_, err = gone.BeginSplit(at(8*minute), sp)
	require.ErrorIs(t, err, catalog.ErrConflict, "its sources are no longer live")
}
