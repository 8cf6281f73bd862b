package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

func TestDoom(t *testing.T) {
	live, old, orphan := blk(key.Part, 0, 1*minute, 1*sec), blk(key.Part, 1, 1*minute, 1*sec), blk(key.L2h, 0, 2*minute, 1*sec)
	split := catalog.Split{ID: id(5 * minute), Level: key.L2h, Window: win(2), Of: 2, Sources: segments(sid(2, 1*sec))}
	done := sliced(blk(key.L2h, 2, 2*minute, 1*sec), 0, 2)
	m := chain(t, replace(5*minute, segments(sid(0, 1*sec)), live), replace(5*minute, segments(sid(1, 1*sec)), old), replace(5*minute, blocks(old)),
		begin(5*minute, split), slice(6*minute, split.ID, done))
	next, err := m.RetireOrphans(at(time.Hour), []catalog.BlockID{orphan.BlockID(), old.BlockID()})
	require.NoError(t, err)
	require.Len(t, next.Retired, 2, "a block is retired once")
	assert.Equal(t, catalog.Retired{BlockID: orphan.BlockID(), At: at(time.Hour).UnixMilli(), Generation: 6}, next.Retired[0])
	_, err = next.Replace(at(3*minute), segments(sid(0, 2*sec), sid(0, 1*minute)), []catalog.Block{blk(key.L2h, 0, 2*minute, 1*minute)})
	require.ErrorIs(t, err, catalog.ErrConflict, "a retired orphan never becomes live")

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
		_, err := m.RetireOrphans(at(tc.now), tc.ids)
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

	first, err := m.Prune(at(20*minute), catalog.Point{Generation: 1, ID: id(1 * sec)})
	require.NoError(t, err)
	assert.Equal(t, catalog.Floor{Point: catalog.Point{Generation: 1, ID: id(1 * sec)}, At: at(20 * minute).UnixMilli(), Raised: 3}, first.Oldest)
	assert.Zero(t, first.Deletable(at(35*minute-time.Millisecond), 15*minute), "who has found an older manifest readable needs the segment")
	assert.Equal(t, segments(a), first.Deletable(at(35*minute), 15*minute), "generation 1 names the block as live, and the segment as consumed")
	m, err = m.Prune(at(6*minute), catalog.Point{Generation: 2, ID: m.ID})
	require.NoError(t, err)
	assert.Equal(t, both, m.Deletable(at(21*minute), 15*minute))
	assert.Zero(t, m.Deletable(at(21*minute-time.Millisecond), 15*minute))

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

// TestManyDeletions: identifiers of tombstones ascend, independently of the clock.
func TestManyDeletions(t *testing.T) {
	m := catalog.Empty()
	var last ulid.ULID
	for i := range 300 {
		var tomb catalog.Tombstone
		var err error
		m, tomb, err = m.Delete(at(time.Duration(10-i%3)*minute), catalog.Tombstone{Matchers: job, MinT: 1, MaxT: 2}, nil)
		require.NoError(t, err)
		require.Positive(t, tomb.ID.Compare(last))
		last = tomb.ID
	}
}

// TestDelete: a tombstone covers the blocks that are live, the segments that were listed, and
// nothing else.
func TestDelete(t *testing.T) {
	listed, unlisted, other, eaten := sid(0, 2*time.Hour), sid(0, 1*sec), sid(5, 1*sec), sid(0, 3*sec)
	part := blk(key.Part, 0, 5*minute, 2*time.Hour)
	m := chain(t, replace(5*minute, segments(eaten), part))
	all := catalog.Tombstone{Matchers: job, MinT: int64(win(0)), MaxT: int64(win(1))}
	next, tomb, err := m.Delete(at(10*minute), all, []catalog.SegmentID{listed, other, eaten})
	require.NoError(t, err)
	assert.Equal(t, []catalog.Tombstone{tomb}, next.Tombstones)
	assert.Equal(t, tomb.ID, next.LastTombstone)
	assert.Equal(t, []catalog.Sealed{{SegmentID: listed, By: tomb.ID}}, next.Sealed, "live, listed, and of its times")
	assert.True(t, tomb.Covers(part.DeletesThrough))
	covered := func(m catalog.Manifest, s catalog.SegmentID) (n int) {
		for _, tomb := range m.Tombstones {
			if tomb.Covers(through(t, m, s)) {
				n++
			}
		}
		return n
	}
	assert.Equal(t, []int{1, 0}, []int{covered(next, listed), covered(next, unlisted)}, "whatever their identifiers say")

	again, second, err := next.Delete(at(11*minute), all, []catalog.SegmentID{listed, unlisted})
	require.NoError(t, err)
	assert.Equal(t, []int{2, 1}, []int{covered(again, listed), covered(again, unlisted)})
	_, err = again.DropTombstones(at(12*minute), []ulid.ULID{second.ID})
	require.ErrorIs(t, err, catalog.ErrConflict)
	merged := blk(key.Part, 0, 11*minute, 3*time.Hour)
	merged.DeletesThrough = again.LastTombstone
	done, err := again.Replace(at(12*minute), catalog.Sources{Segments: []catalog.SegmentID{listed, unlisted}, Blocks: blocks(part).Blocks}, []catalog.Block{merged})
	require.NoError(t, err)
	assert.Empty(t, done.Sealed)
	dropped, err := done.DropTombstones(at(12*minute), []ulid.ULID{tomb.ID, second.ID, id(time.Hour)})
	require.NoError(t, err)
	assert.Empty(t, dropped.Tombstones)
	_, third, err := dropped.Delete(at(1*minute), all, nil)
	require.NoError(t, err)
	assert.Positive(t, third.ID.Compare(second.ID), "also newer than the ones that are dropped")
}

// through returns the DeletesThrough of a segment in a snapshot with the manifest m.
func through(t *testing.T, m catalog.Manifest, s catalog.SegmentID) ulid.ULID {
	t.Helper()
	store := newStore(t, nil)
	put(t, store, s.Key("a").String(), "x")
	l, err := catalog.List(t.Context(), store, "a", key.MinTime, key.MaxTime)
	require.NoError(t, err)
	snap := l.With(m)
	require.Len(t, snap.Segments, 1)
	return snap.Segments[0].DeletesThrough
}

// TestDeleteFromQueue: a tombstone covers what was sent to the queue before the deletion, whenever
// it arrives, and stays until nothing of that can arrive any more.
func TestDeleteFromQueue(t *testing.T) {
	sent := func(d time.Duration) catalog.SegmentID {
		s := sid(0, d)
		s.Queued = true
		return s
	}
	tomb := catalog.Tombstone{Matchers: job, MinT: int64(win(0)), MaxT: int64(win(1)), QueuedThrough: at(20*sec).UnixMilli() - 1}
	m, first, err := catalog.Empty().Delete(at(1*sec), tomb, nil)
	require.NoError(t, err)
	tomb.QueuedThrough = at(10 * sec).UnixMilli()
	m, second, err := m.Delete(at(2*sec), tomb, nil)
	require.NoError(t, err)
	require.Equal(t, first.QueuedThrough, second.QueuedThrough, "a deletion that is committed later covers no less")
	tomb.QueuedThrough = at(40*sec).UnixMilli() - 1
	m, third, err := m.Delete(at(22*sec), tomb, nil)
	require.NoError(t, err)
	for d, want := range map[time.Duration]int{0: 3, 20*sec - time.Millisecond: 3, 20 * sec: 1, 39 * sec: 1, 40 * sec: 0} {
		n := 0
		for _, tomb := range m.Tombstones {
			if tomb.Covers(through(t, m, sent(d))) {
				n++
			}
		}
		assert.Equal(t, want, n, "sent after %s", d)
		assert.False(t, third.Covers(through(t, m, sid(0, d))), "the identifier of a segment that is not of the queue tells nothing")
	}
	ids := []ulid.ULID{first.ID, second.ID}
	last := at(20*sec - time.Millisecond).Add(catalog.QueueHorizon)
	_, err = m.DropTombstones(last, ids)
	require.ErrorIs(t, err, catalog.ErrConflict)
	_, err = m.DropTombstones(last.Add(time.Millisecond), ids)
	require.NoError(t, err)
}

// TestOldTombstonesStayReadable: a manifest of before the matchers of deletions were limited is
// read, and takes no more.
func TestOldTombstonesStayReadable(t *testing.T) {
	next, tomb, err := catalog.Empty().Delete(at(minute), catalog.Tombstone{Matchers: job, MaxT: 1}, nil)
	require.NoError(t, err)
	tomb.Matchers = []catalog.Matcher{{Type: "=", Name: "a", Value: strings.Repeat("v", catalog.MaxTombstoneBytes)}}
	next.Tombstones = []catalog.Tombstone{tomb}
	raw, err := catalog.Encode(next)
	require.NoError(t, err)
	back, err := catalog.Decode(raw)
	require.NoError(t, err)
	_, _, err = back.Delete(at(2*minute), catalog.Tombstone{Matchers: job, MaxT: 1}, nil)
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
		_, _, err := tc.m.Delete(at(minute), catalog.Tombstone{Matchers: tc.matchers, MinT: tc.mint, MaxT: tc.maxt}, nil)
		require.ErrorIs(t, err, tc.want, name)
	}
}

func TestDropTombstonesConflicts(t *testing.T) {
	live := blk(key.Part, 0, 1*minute, 1*sec)
	split := catalog.Split{ID: id(1 * minute), Level: key.L2h, Window: win(2), Of: 2, Sources: segments(sid(2, 1*sec))}
	done := sliced(blk(key.L2h, 2, 1*minute, 1*sec), 0, 2)
	seal := func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		m, _, err := m.Delete(at(2*minute), catalog.Tombstone{Matchers: job, MinT: int64(win(3)) - 1, MaxT: int64(win(3)) - 1}, segments(sid(2, 1*sec)).Segments)
		return m, err
	}
	for name, m := range map[string]catalog.Manifest{
		"block":           chain(t, replace(1*minute, segments(sid(0, 1*sec)), live), del(2*minute, live.MaxT, live.MaxT)),
		"slice":           chain(t, begin(1*minute, split), slice(1*minute, split.ID, done), del(2*minute, done.MinT, done.MinT)),
		"source of split": chain(t, begin(1*minute, split), seal),
		"segment":         chain(t, seal),
	} {
		_, err := m.DropTombstones(at(time.Hour), []ulid.ULID{m.LastTombstone})
		require.ErrorIs(t, err, catalog.ErrConflict, name)
	}
}

func TestTombstone(t *testing.T) {
	tomb := catalog.Tombstone{ID: id(10 * sec), Matchers: []catalog.Matcher{
		{Type: "=", Name: "__name__", Value: "up"}, {Type: "!=", Name: "job", Value: "a"}, {Type: "=~", Name: "zone", Value: "eu.*|"}, {Type: "!~", Name: "x", Value: "y+"},
	}, MinT: 5, MaxT: 7}
	ms, err := tomb.LabelMatchers()
	require.NoError(t, err)
	for lset, want := range map[string]bool{
		`{__name__="up"}`: true, `{__name__="up", job="b", zone="eu-1", x="xy"}`: true,
		`{__name__="down"}`: false, `{__name__="up", job="a"}`: false, `{__name__="up", zone="us"}`: false, `{__name__="up", x="yy"}`: false,
	} {
		got := !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(parse(t, lset).Get(m.Name)) })
		assert.Equal(t, want, got, lset)
	}
	assert.Equal(t, tomb.Matchers, catalog.MatchersOf(ms))
	for d, want := range map[time.Duration]bool{0: true, 9 * sec: true, 10 * sec: false, 11 * sec: false} {
		assert.Equal(t, want, tomb.Covers(id(d)), "%s", d)
	}
	for ts, want := range map[int64]bool{4: false, 5: true, 7: true, 8: false} {
		assert.Equal(t, want, tomb.Overlaps(ts, ts))
	}
	assert.True(t, tomb.Overlaps(0, 9))
	_, err = catalog.Tombstone{Matchers: []catalog.Matcher{{}}}.LabelMatchers()
	assert.ErrorIs(t, err, catalog.ErrInvalid)
}
