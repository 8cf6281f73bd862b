package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

func TestDoom(t *testing.T) {
	live, old, orphan := blk(key.Part, 0, 1*minute, 1*sec), blk(key.Part, 1, 1*minute, 1*sec), blk(key.L2h, 0, 2*minute, 1*sec)
	split := catalog.Split{ID: id(5 * minute), Level: key.L2h, Window: win(2), Of: 2, Sources: segments(sid(2, 1*sec))}
	done := sliced(blk(key.L2h, 2, 2*minute, 1*sec), 0, 2)
	m := chain(t, replace(5*minute, segments(sid(0, 1*sec)), live), replace(5*minute, segments(sid(1, 1*sec)), old), replace(5*minute, blocks(old)),
		begin(5*minute, split), slice(6*minute, split.ID, done))
	next, err := m.Doom(at(time.Hour), []catalog.BlockID{orphan.BlockID(), old.BlockID()})
	require.NoError(t, err)
	require.Len(t, next.Retired, 2, "a block is retired once")
	assert.Equal(t, catalog.Retired{BlockID: orphan.BlockID(), At: at(time.Hour).UnixMilli(), Generation: 6}, next.Retired[0])
	_, err = next.Replace(at(3*minute), segments(sid(0, 2*sec), sid(0, 1*minute)), []catalog.Block{blk(key.L2h, 0, 2*minute, 1*minute)})
	require.ErrorIs(t, err, catalog.ErrConflict, "what is doomed never becomes live")

	for name, tc := range map[string]struct {
		now  time.Duration
		ids  []catalog.BlockID
		want error
	}{
		"live":             {time.Hour, blocks(live).Blocks, catalog.ErrConflict},
		"slice of a split": {time.Hour, blocks(done).Blocks, catalog.ErrConflict},
		"too young":        {17 * minute, blocks(orphan).Blocks, catalog.ErrConflict},
		"twice":            {time.Hour, blocks(orphan, orphan).Blocks, catalog.ErrInvalid},
	} {
		_, err := m.Doom(at(tc.now), tc.ids)
		require.ErrorIs(t, err, tc.want, name)
	}
}

// TestLifeAfterDeath follows a segment and a block from being superseded to being unknown.
func TestLifeAfterDeath(t *testing.T) {
	a := sid(0, 1*sec)
	b := blk(key.Part, 0, 1*minute, 1*sec)
	m := chain(t, replace(5*minute, segments(a), b), replace(6*minute, blocks(b)))
	both := catalog.Sources{Segments: []catalog.SegmentID{a}, Blocks: []catalog.BlockID{b.BlockID()}}

	assert.Zero(t, m.Deletable(at(time.Hour), 15*minute), "history names them")
	_, err := m.Prune(at(time.Hour), catalog.Point{Generation: 3, ID: id(time.Hour)})
	require.ErrorIs(t, err, catalog.ErrInvalid, "history does not begin in the future")
	_, err = m.Prune(at(time.Hour), catalog.Point{Generation: 2, ID: id(time.Hour)})
	require.ErrorIs(t, err, catalog.ErrInvalid, "another manifest of that generation")

	first, err := m.Prune(at(time.Hour), catalog.Point{Generation: 1, ID: id(1 * sec)})
	require.NoError(t, err)
	assert.Equal(t, segments(a), first.Deletable(at(time.Hour), 15*minute), "generation 1 names the block as live, and the segment as consumed")
	m, err = m.Prune(at(time.Hour), catalog.Point{Generation: 2, ID: m.ID})
	require.NoError(t, err)
	assert.Equal(t, both, m.Deletable(at(21*minute), 15*minute))
	assert.Equal(t, segments(a), m.Deletable(at(21*minute-time.Millisecond), 15*minute))
	assert.Zero(t, m.Deletable(at(20*minute-time.Millisecond), 15*minute))

	m.Generation, m.ID = 3, id(3*sec)
	m, err = m.Forget(both.Segments, both.Blocks)
	require.NoError(t, err)
	assert.Equal(t, uint64(4), m.Consumed[0].Gone)
	assert.Equal(t, uint64(4), m.Retired[0].Gone)
	assert.Zero(t, m.Deletable(at(time.Hour), 15*minute), "nothing is deleted twice")
	_, err = m.Replace(at(6*minute), segments(a), nil)
	require.ErrorIs(t, err, catalog.ErrConflict, "what is gone is still consumed")

	m.Generation, m.ID = 9, id(9*sec)
	again, err := m.Forget(both.Segments, both.Blocks)
	require.NoError(t, err)
	assert.Equal(t, m, again)
	m, err = m.Prune(at(time.Hour), catalog.Point{Generation: 3, ID: id(3 * sec)})
	require.NoError(t, err)
	require.Len(t, m.Consumed, 1, "who has listed the segment may read the manifest only now")
	m, err = m.Prune(at(21*minute), catalog.Point{Generation: 4, ID: id(4 * sec)})
	require.NoError(t, err)
	require.Len(t, m.Retired, 1, "a job that has read the block may still try to commit")
	m, err = m.Prune(at(22*minute), catalog.Point{Generation: 4, ID: id(4 * sec)})
	require.NoError(t, err)
	assert.Empty(t, m.Consumed)
	assert.Empty(t, m.Retired)
	back, err := m.Prune(at(time.Hour), catalog.Point{Generation: 2, ID: id(2 * sec)})
	require.NoError(t, err)
	assert.Equal(t, m, back, "history does not grow back")

	_, err = m.Forget(both.Segments, nil)
	require.ErrorIs(t, err, catalog.ErrConflict)
	_, err = m.Forget(nil, both.Blocks)
	require.ErrorIs(t, err, catalog.ErrConflict)
}

// TestManyDeletions: deletions at one moment share its millisecond, so that none of them deletes what is written a millisecond later.
func TestManyDeletions(t *testing.T) {
	m := catalog.Empty()
	var last ulid.ULID
	for range 300 {
		var tomb catalog.Tombstone
		var err error
		m, tomb, err = m.Delete(at(10*minute), job, 1, 2)
		require.NoError(t, err)
		require.Positive(t, tomb.ID.Compare(last))
		last = tomb.ID
	}
	written := ulid.ULID{6: 0xff, 7: 0xff, 8: 0xfe}
	require.NoError(t, written.SetTime(uint64(at(10*minute).UnixMilli())))
	for _, tomb := range m.Tombstones {
		require.True(t, tomb.AppliesTo(written, ulid.ULID{}), "written at that moment")
		require.False(t, tomb.AppliesTo(id(10*minute+time.Millisecond), ulid.ULID{}), "written after it")
	}
}

func TestDelete(t *testing.T) {
	m := chain(t, replace(5*minute, segments(sid(0, 2*time.Hour)), blk(key.Part, 0, 5*minute, 2*time.Hour)))
	next, tomb, err := m.Delete(at(10*minute), job, 1, 2)
	require.NoError(t, err)
	assert.Equal(t, []catalog.Tombstone{tomb}, next.Tombstones)
	assert.Equal(t, tomb.ID, next.LastTombstone)
	assert.True(t, tomb.AppliesTo(id(2*time.Hour), ulid.ULID{}), "newer than all that is live, whatever the clock says")
	again, second, err := next.Delete(at(11*minute), job, 1, 2)
	require.NoError(t, err)
	assert.Positive(t, second.ID.Compare(tomb.ID))
	dropped, err := again.DropTombstones([]ulid.ULID{second.ID, id(time.Hour)})
	require.NoError(t, err, "it deletes from other times than the block has")
	assert.Equal(t, next.Tombstones, dropped.Tombstones)
	assert.Equal(t, second.ID, dropped.LastTombstone)
	_, third, err := dropped.Delete(at(11*minute), job, 1, 2)
	require.NoError(t, err)
	assert.Positive(t, third.ID.Compare(second.ID), "also newer than the ones that are dropped")
}

// TestOldTombstonesStayReadable: a manifest of before the matchers of deletions were limited is
// read, and takes no more.
func TestOldTombstonesStayReadable(t *testing.T) {
	next, tomb, err := catalog.Empty().Delete(at(minute), job, 0, 1)
	require.NoError(t, err)
	tomb.Matchers = []catalog.Matcher{{Type: "=", Name: "a", Value: strings.Repeat("v", catalog.MaxTombstoneBytes)}}
	next.Tombstones = []catalog.Tombstone{tomb}
	raw, err := catalog.Encode(next)
	require.NoError(t, err)
	back, err := catalog.Decode(raw)
	require.NoError(t, err)
	_, _, err = back.Delete(at(2*minute), job, 0, 1)
	require.ErrorIs(t, err, catalog.ErrFull)
	var limit *catalog.LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, "tombstone_bytes", limit.Limit)
}

func TestDeleteRefuses(t *testing.T) {
	full := catalog.Empty()
	for i := range catalog.MaxTombstones {
		full.Tombstones = append(full.Tombstones, catalog.Tombstone{ID: id(time.Duration(i)), Matchers: job})
	}
	for name, tc := range map[string]struct {
		m          catalog.Manifest
		matchers   []catalog.Matcher
		mint, maxt int64
		want       error
	}{
		"no matcher":   {catalog.Empty(), nil, 0, 1, catalog.ErrInvalid},
		"empty range":  {catalog.Empty(), job, 1, 0, catalog.ErrInvalid},
		"unknown type": {catalog.Empty(), []catalog.Matcher{{Type: "==", Name: "a"}}, 0, 1, catalog.ErrInvalid},
		"bad regexp":   {catalog.Empty(), []catalog.Matcher{{Type: "=~", Name: "a", Value: "("}}, 0, 1, catalog.ErrInvalid},
		"no name":      {catalog.Empty(), []catalog.Matcher{{Type: "=", Value: "b"}}, 0, 1, catalog.ErrInvalid},
		"too many":     {full, job, 0, 1, catalog.ErrFull},
		"too large":    {catalog.Empty(), []catalog.Matcher{{Type: "=", Name: "a", Value: strings.Repeat("v", catalog.MaxMatcherBytes)}}, 0, 1, catalog.ErrInvalid},
	} {
		_, _, err := tc.m.Delete(at(minute), tc.matchers, tc.mint, tc.maxt)
		require.ErrorIs(t, err, tc.want, name)
	}
}

func TestDropTombstonesConflicts(t *testing.T) {
	live := blk(key.Part, 0, 1*minute, 1*sec)
	split := catalog.Split{ID: id(1 * minute), Level: key.L2h, Window: win(2), Of: 2, Sources: segments(sid(2, 1*sec))}
	for name, m := range map[string]catalog.Manifest{
		"block":           chain(t, replace(1*minute, segments(sid(0, 1*sec)), live), del(2*minute, live.MaxT, live.MaxT)),
		"source of split": chain(t, begin(1*minute, split), del(2*minute, int64(win(3))-1, int64(win(3))-1)),
	} {
		_, err := m.DropTombstones([]ulid.ULID{m.LastTombstone})
		require.ErrorIs(t, err, catalog.ErrConflict, name)
	}
}

func TestTombstone(t *testing.T) {
	tomb := catalog.Tombstone{ID: id(10 * sec), Matchers: []catalog.Matcher{
		{Type: "=", Name: "__name__", Value: "up"}, {Type: "!=", Name: "job", Value: "a"}, {Type: "=~", Name: "zone", Value: "eu.*|"}, {Type: "!~", Name: "x", Value: "y+"},
	}, MinT: 5, MaxT: 7}
	for lset, want := range map[string]bool{
		`{__name__="up"}`: true, `{__name__="up", job="b", zone="eu-1", x="xy"}`: true,
		`{__name__="down"}`: false, `{__name__="up", job="a"}`: false, `{__name__="up", zone="us"}`: false, `{__name__="up", x="yy"}`: false,
	} {
		assert.Equal(t, want, tomb.Matches(parse(t, lset)), lset)
	}
	ms, err := tomb.LabelMatchers()
	require.NoError(t, err)
	assert.Equal(t, tomb.Matchers, catalog.MatchersOf(ms))
	for _, tc := range []struct {
		rank, through time.Duration
		want          bool
	}{{9 * sec, 0, true}, {9 * sec, 10 * sec, false}, {9 * sec, 11 * sec, false}, {10 * sec, 0, false}, {11 * sec, 0, false}, {9 * sec, 9 * sec, true}} {
		assert.Equal(t, tc.want, tomb.AppliesTo(id(tc.rank), id(tc.through)), "%v", tc)
	}
	for ts, want := range map[int64]bool{4: false, 5: true, 7: true, 8: false} {
		assert.Equal(t, want, tomb.Covers(ts))
		assert.Equal(t, want, tomb.Overlaps(ts, ts))
	}
	assert.True(t, tomb.Overlaps(0, 9))
	assert.Panics(t, func() { catalog.Tombstone{Matchers: []catalog.Matcher{{}}}.Matches(labels.EmptyLabels()) })
}
