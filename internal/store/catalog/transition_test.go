package catalog_test

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

const (
	sec    = time.Second
	minute = time.Minute
)

func TestReplace(t *testing.T) {
	a, b, c := sid(0, 1*sec), sid(0, 2*sec), sid(0, 3*sec)
	out := blk(key.Part, 0, 5*minute, 2*sec)
	m := chain(t, replace(6*minute, segments(b, a), out))
	assert.Equal(t, []catalog.Block{out}, m.Blocks)
	at6 := at(6 * minute).UnixMilli()
	assert.Equal(t, []catalog.Consumed{{SegmentID: a, At: at6, Generation: 1}, {SegmentID: b, At: at6, Generation: 1}}, m.Consumed)

	all := blk(key.L24h, 0, 7*minute, 3*sec)
	s := blocks(out)
	s.Segments = []catalog.SegmentID{c}
	next, err := m.Replace(at(8*minute), s, []catalog.Block{all})
	require.NoError(t, err)
	assert.Equal(t, []catalog.Block{all}, next.Blocks)
	assert.Equal(t, []catalog.Retired{{BlockID: out.BlockID(), At: at(8 * minute).UnixMilli(), Generation: 2}}, next.Retired)
	assert.Len(t, next.Consumed, 3)
	assert.Equal(t, []catalog.Block{out}, m.Blocks, "a transition leaves its receiver alone")

	next, err = m.Replace(at(8*minute), s, nil)
	require.NoError(t, err, "everything may be deleted")
	assert.Empty(t, next.Blocks)

	next, err = m.Replace(at(-time.Hour), s, nil)
	require.NoError(t, err)
	assert.Equal(t, at(1*sec).UnixMilli()+1, next.Retired[0].At, "a clock that is slow does not step behind the manifest")
}

func TestReplaceConflicts(t *testing.T) {
	a, b, c := sid(0, 1*sec), sid(0, 2*sec), sid(0, 3*sec)
	live, old := blk(key.Part, 0, 5*minute, 2*sec), blk(key.Part, 1, 4*minute, 9*sec)
	split := catalog.Split{ID: id(5 * minute), Level: key.L2h, Window: win(2), Of: 2, Sources: segments(sid(2, 1*sec))}
	done := sliced(blk(key.L2h, 2, 6*minute, 1*sec), 0, 2)
	m := chain(t, replace(5*minute, segments(a, b), live), replace(5*minute, segments(sid(1, 9*sec)), old), replace(5*minute, blocks(old)),
		begin(5*minute, split), slice(6*minute, split.ID, done), del(2500*time.Millisecond, int64(win(0)), int64(win(0))))
	require.Equal(t, id(5*sec).Time()+1, m.LastTombstone.Time(), "a tombstone is newer than the manifest before it")
	good := blk(key.Part, 0, 6*minute, 3*sec)
	good.DeletesThrough = m.LastTombstone
	of := func(change func(*catalog.Block)) catalog.Block {
		b := good
		change(&b)
		return b
	}
	for _, tc := range []struct {
		name string
		s    catalog.Sources
		out  []catalog.Block
		now  time.Duration
		want error
	}{
		{"good", segments(c), []catalog.Block{good}, 7 * minute, nil},
		{"segment is consumed", segments(a, c), []catalog.Block{good}, 7 * minute, catalog.ErrConflict},
		{"block is not live", blocks(old), nil, 7 * minute, catalog.ErrConflict},
		{"block never was", blocks(good), nil, 7 * minute, catalog.ErrConflict},
		{"segment is claimed by a split", segments(sid(2, 1*sec)), nil, 7 * minute, catalog.ErrConflict},
		{"output is live", segments(c), []catalog.Block{of(func(b *catalog.Block) { b.ID = live.ID })}, 7 * minute, catalog.ErrConflict},
		{"output is retired", segments(sid(1, 3*sec)), []catalog.Block{of(func(b *catalog.Block) { b.ID, b.Window, b.MinT, b.MaxT = old.ID, old.Window, old.MinT, old.MaxT })}, 7 * minute, catalog.ErrConflict},
		{"output is a slice", segments(sid(2, 3*sec)), []catalog.Block{of(func(b *catalog.Block) {
			b.ID, b.Level, b.Window, b.MinT, b.MaxT = done.ID, done.Level, done.Window, done.MinT, done.MaxT
		})}, 7 * minute, catalog.ErrConflict},
		{"job at its limit", segments(c), []catalog.Block{good}, 21 * minute, nil},
		{"job is too old", segments(c), []catalog.Block{good}, 21*minute + time.Millisecond, catalog.ErrConflict},
		{"no sources", catalog.Sources{}, []catalog.Block{good}, 7 * minute, catalog.ErrInvalid},
		{"source twice", segments(c, c), []catalog.Block{good}, 7 * minute, catalog.ErrInvalid},
		{"output twice", segments(c), []catalog.Block{good, good}, 7 * minute, catalog.ErrInvalid},
		{"rank below that of a source", blocks(live), []catalog.Block{of(func(b *catalog.Block) { b.Rank = id(1 * sec) })}, 7 * minute, catalog.ErrInvalid},
		{"source of another window", segments(c, sid(1, 2*sec)), []catalog.Block{good}, 7 * minute, catalog.ErrInvalid},
		{"block of a wider window", blocks(live), []catalog.Block{blk(key.Part, 1, 6*minute, 2*sec)}, 7 * minute, catalog.ErrInvalid},
		{"tombstones of the future", segments(c), []catalog.Block{of(func(b *catalog.Block) { b.DeletesThrough = id(time.Hour) })}, 7 * minute, catalog.ErrInvalid},
		{"times outside of the window", segments(c), []catalog.Block{of(func(b *catalog.Block) { b.MaxT = int64(win(1)) })}, 7 * minute, catalog.ErrInvalid},
		{"no such window", segments(c), []catalog.Block{of(func(b *catalog.Block) { b.Window++ })}, 7 * minute, catalog.ErrInvalid},
		{"nothing in it", segments(c), []catalog.Block{of(func(b *catalog.Block) { b.Series, b.Samples, b.Bytes = 0, 0, 0 })}, 7 * minute, catalog.ErrInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := m.Replace(at(tc.now), tc.s, tc.out)
			require.ErrorIs(t, err, tc.want)
		})
	}
}

// TestReplaceAndTombstones: what a job did not know must delete from all that it wrote, or from
// nothing.
func TestReplaceAndTombstones(t *testing.T) {
	a, b := sid(0, 1*sec), sid(0, 2*sec)
	m := catalog.Empty()
	var ids []ulid.ULID
	for _, listed := range [][]catalog.SegmentID{{a}, {a, b}} {
		var tomb catalog.Tombstone
		var err error
		m, tomb, err = m.Delete(at(10*sec), catalog.Tombstone{Matchers: job, MinT: int64(win(0)), MaxT: int64(win(0)) + 5}, listed)
		require.NoError(t, err)
		ids = append(ids, tomb.ID)
	}
	for _, tc := range []struct {
		name    string
		sources catalog.Sources
		through ulid.ULID
		want    error
	}{
		{"all cover all sources", segments(a), ulid.ULID{}, nil},
		{"all are applied", segments(a, b), ids[1], nil},
		{"one is applied, one covers all sources", segments(a, b), ids[0], nil},
		{"one covers one source of two", segments(a, b), ulid.ULID{}, catalog.ErrConflict},
		{"one covers no source", segments(b), ulid.ULID{}, catalog.ErrConflict},
		{"none covers a source", segments(a, sid(0, 3*sec)), ids[0], catalog.ErrConflict},
		{"they are of another window", segments(sid(1, 1*sec)), ulid.ULID{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := blk(key.Part, int((int64(tc.sources.Segments[0].Window)-int64(win(0)))/key.WindowMillis), minute, 4*sec)
			out.DeletesThrough = tc.through
			_, err := m.Replace(at(2*minute), tc.sources, []catalog.Block{out})
			require.ErrorIs(t, err, tc.want)
		})
	}
}

func TestExpire(t *testing.T) {
	a, b := sid(0, 1*sec), sid(2, 1*sec)
	live := blk(key.Part, 0, 5*minute, 1*sec)
	split := catalog.Split{ID: id(5 * minute), Level: key.L2h, Window: win(2), Of: 2, Sources: segments(b, sid(2, 2*sec))}
	done := sliced(blk(key.L2h, 2, 6*minute, 2*sec), 1, 2)
	m := chain(t, replace(5*minute, segments(a), live), begin(5*minute, split), slice(6*minute, split.ID, done))

	next, err := m.Expire(at(time.Hour), catalog.Sources{Segments: split.Sources.Segments, Blocks: blocks(live).Blocks})
	require.NoError(t, err)
	assert.Empty(t, next.Blocks)
	assert.Empty(t, next.Splits)
	assert.Len(t, next.Consumed, 3)
	assert.Equal(t, []catalog.BlockID{live.BlockID(), done.BlockID()}, []catalog.BlockID{next.Retired[0].BlockID, next.Retired[1].BlockID})

	for name, s := range map[string]catalog.Sources{
		"consumed": segments(a), "not live": blocks(blk(key.Part, 0, 9*minute, 1*sec)), "part of a split": segments(b),
	} {
		_, err := m.Expire(at(time.Hour), s)
		require.ErrorIs(t, err, catalog.ErrConflict, name)
	}
	_, err = m.Expire(at(time.Hour), catalog.Sources{})
	require.ErrorIs(t, err, catalog.ErrInvalid)
}

func TestSlice(t *testing.T) {
	for _, s := range []catalog.Slice{{}, {Index: 0, Of: 1}} {
		assert.True(t, s.Contains(0) && s.Contains(1<<63) && s.Contains(^uint64(0)))
		assert.Equal(t, "whole", s.String())
	}
	for _, of := range []int{2, 3, 7, 64, catalog.MaxSlices} {
		step := ^uint64(0)/uint64(of) + 1
		for _, x := range []uint64{0, 1, step - 1, step, step + 1, 1 << 63, ^uint64(0) - 1, ^uint64(0)} {
			n := 0
			for i := range of {
				if (catalog.Slice{Index: i, Of: of}).Contains(x) {
					n++
				}
			}
			assert.Equal(t, 1, n, "%d of %d slices", x, of)
		}
		assert.True(t, catalog.Slice{Index: 0, Of: of}.Contains(0))
		assert.True(t, catalog.Slice{Index: of - 1, Of: of}.Contains(^uint64(0)))
	}
	assert.Equal(t, "2/8", catalog.Slice{Index: 2, Of: 8}.String())
}
