package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

var errFault = errors.New("fault")

// newStore returns a store that enforces the protocol: all but the manifest is written once.
func newStore(t *testing.T, faults func(memstore.Call) memstore.Fault) *memstore.Store {
	s := memstore.New(memstore.Settings{Faults: faults, Immutable: func(k string) bool { return !strings.HasSuffix(k, "/manifest.json") }})
	t.Cleanup(func() { assert.Empty(t, s.Violations()) })
	return s
}

func toManifest(c memstore.Call) bool { return c.Op == memstore.Put && c.Key == key.Manifest("a") }

func toCopy(c memstore.Call) bool {
	return c.Op == memstore.Put && strings.HasPrefix(c.Key, key.ManifestsPrefix("a"))
}

// tick is a change that can be counted: each adds a consumed segment.
func tick(n int) catalog.Change {
	return func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		return m.Replace(time.Now(), segments(sid(n, 0)), nil)
	}
}

// blind is like tick, but applies any number of times.
func blind(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
	next, _, err := m.Delete(now, catalog.Tombstone{Matchers: job, MaxT: 1}, nil)
	return next, err
}

func commit(t *testing.T, store catalog.Store, change catalog.Change) catalog.Manifest {
	t.Helper()
	m, err := catalog.Commit(t.Context(), store, "a", change)
	require.NoError(t, err)
	return m
}

func TestCommit(t *testing.T) {
	store := newStore(t, nil)
	m, etag, err := catalog.ReadManifest(t.Context(), store, "a")
	require.NoError(t, err)
	require.Equal(t, catalog.Empty(), m)
	require.Empty(t, etag)

	var chain []catalog.Manifest
	for i := range 3 {
		chain = append(chain, commit(t, store, tick(i)))
	}
	cur, etag, err := catalog.ReadManifest(t.Context(), store, "a")
	require.NoError(t, err)
	require.NotEmpty(t, etag)
	require.Equal(t, chain[2].ID, cur.ID)
	for i, m := range chain {
		require.Equal(t, uint64(i+1), m.Generation)
		require.Len(t, m.Consumed, i+1)
		if i > 0 {
			require.Equal(t, chain[i-1].ID, m.Parent)
			require.Greater(t, m.ID.Time(), m.Parent.Time())
		}
	}
	require.Equal(t, []string{
		key.Manifest("a"), key.ManifestCopy("a", ulid.ULID{}), key.ManifestCopy("a", chain[0].ID), key.ManifestCopy("a", chain[1].ID),
		key.ManifestCopy("a", chain[2].ID),
	}, store.Keys())

	same := commit(t, store, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) { return m, nil })
	require.Equal(t, cur, same, "a change of nothing writes nothing")
	require.Len(t, store.Keys(), 5)
	_, err = catalog.Commit(t.Context(), store, "a", func(catalog.Manifest, time.Time) (catalog.Manifest, error) { return catalog.Manifest{}, errFault })
	require.ErrorIs(t, err, errFault)
	_, err = catalog.Commit(t.Context(), store, "a", tick(1))
	require.ErrorIs(t, err, catalog.ErrConflict)
	_, err = catalog.Commit(t.Context(), store, "a", func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		m.Blocks = []catalog.Block{{}}
		return m, nil
	})
	require.ErrorIs(t, err, catalog.ErrInvalid, "no invalid manifest is written")
}

// TestCommitWithSlowClock: ids ascend even if the store's clock went back.
func TestCommitWithSlowClock(t *testing.T) {
	store := newStore(t, nil)
	now := time.Now()
	first := commit(t, slow{store, &now}, tick(0))
	now = t0
	second := commit(t, slow{store, &now}, tick(1))
	require.Equal(t, first.ID.Time()+1, second.ID.Time())
}

// slow is a store whose clock shows now.
type slow struct {
	*memstore.Store
	now *time.Time
}

func (s slow) Now(context.Context) (time.Time, error) { return *s.now, nil }

// TestCommitAfterRestore: when an older manifest was put in the place of the newest, nothing is
// committed on top of it.
func TestCommitAfterRestore(t *testing.T) {
	store := newStore(t, nil)
	var bodies []string
	var ids []string
	for i := range 4 {
		m := commit(t, store, tick(i))
		bodies, ids = append(bodies, mustEncode(t, m)), append(ids, m.ID.String())
	}
	for i := range 3 {
		put(t, store, key.Manifest("a"), bodies[i])
		before := store.Keys()
		_, err := catalog.Commit(t.Context(), store, "a", tick(9))
		require.ErrorIs(t, err, catalog.ErrRestored, "generation %d", i+1)
		require.ErrorContains(t, err, ids[3], "the error names the newest copy")
		require.NotErrorIs(t, err, catalog.ErrConflict)
		require.Equal(t, before, store.Keys())
		m, _, err := catalog.ReadManifest(t.Context(), store, "a")
		require.NoError(t, err)
		require.Equal(t, uint64(i+1), m.Generation)
	}
	// The newest copy in its place makes it right again.
	put(t, store, key.Manifest("a"), bodies[3])
	commit(t, store, tick(9))
}

// TestCommitFaults fails the puts of a commit in every way, once or several times in a row.
func TestCommitFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		match func(memstore.Call) bool
		when  memstore.When
		times int
		want  error // nil: applied exactly once
		final uint64
	}{
		{"swap fails before", toManifest, memstore.Before, 1, nil, 2},
		{"swap fails after", toManifest, memstore.After, 1, nil, 2},
		{"swap fails before, again and again", toManifest, memstore.Before, 3, nil, 2},
		{"swap fails before, too often", toManifest, memstore.Before, 4, catalog.ErrUnknownEffect, 1},
		{"copy of the next fails before", toCopy, memstore.Before, 1, nil, 2},
		{"copy of the next fails after", toCopy, memstore.After, 1, nil, 2},
		{"read fails", memstore.On(memstore.Get), memstore.Before, 1, errFault, 1},
		{"read fails midway", memstore.On(memstore.Get), memstore.Midway, 1, errFault, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script := &memstore.Script{}
				store := newStore(t, script.Next)
				commit(t, store, blind)
				for range tc.times {
					script.Add(tc.match, memstore.Fault{Err: errFault, When: tc.when})
				}
				m, err := catalog.Commit(t.Context(), store, "a", blind)
				require.ErrorIs(t, err, tc.want)
				require.Zero(t, script.Left())
				cur, _, err := catalog.ReadManifest(t.Context(), store, "a")
				require.NoError(t, err)
				require.Equal(t, tc.final, cur.Generation)
				require.Len(t, cur.Tombstones, int(tc.final))
				if tc.want == nil {
					require.Equal(t, cur.ID, m.ID)
				}
			})
		})
	}
}

// TestCopyOfADeadCommitter: the copy that a committer did not make is made by the next one, before
// it swaps.
func TestCopyOfADeadCommitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, when := range []memstore.When{memstore.Before, memstore.After} {
			script := &memstore.Script{}
			store := newStore(t, script.Next)
			commit(t, store, blind)
			script.Add(toCopy, memstore.Fault{Err: errFault})
			m := commit(t, store, blind)
			require.NotContains(t, store.Keys(), key.ManifestCopy("a", m.ID))
			script.Add(toCopy, memstore.Fault{Err: errFault, When: when})
			_, err := catalog.Commit(t.Context(), store, "a", blind)
			require.ErrorIs(t, err, errFault)
			cur, _, err := catalog.ReadManifest(t.Context(), store, "a")
			require.NoError(t, err)
			require.Equal(t, m.ID, cur.ID)
			commit(t, store, blind)
			require.Contains(t, store.Keys(), key.ManifestCopy("a", m.ID))
		}
	})
}

// between runs fn in a store after the effect of the first put of the manifest, whose answer is
// then lost.
type between struct {
	objstore.Store
	fn func()
}

func (b *between) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	etag, err := b.Store.Put(ctx, k, body, cond)
	if fn := b.fn; fn != nil && strings.HasSuffix(k, "/manifest.json") && err == nil {
		b.fn = nil
		fn()
		return "", errFault
	}
	return etag, err
}

// TestCommitIsFoundUnderSuccessors: the answer is lost, and others commit before the manifest is
// read again.
func TestCommitIsFoundUnderSuccessors(t *testing.T) {
	for _, successors := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, nil)
			commit(t, store, blind)
			m, err := catalog.Commit(t.Context(), &between{store, func() {
				for i := range successors {
					commit(t, store, tick(i))
				}
			}}, "a", blind)
			require.NoError(t, err)
			require.Equal(t, uint64(2), m.Generation)
			cur, _, err := catalog.ReadManifest(t.Context(), store, "a")
			require.NoError(t, err)
			require.Len(t, cur.Tombstones, 2, "applied once")
			require.Len(t, cur.Consumed, successors)
		})
	}
}

// TestCommitUnknown: the answer is lost, and history is pruned before the manifest is read again.
func TestCommitUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		commit(t, store, blind)
		_, err := catalog.Commit(t.Context(), &between{store, func() {
			for i := range 3 {
				commit(t, store, tick(i))
			}
			time.Sleep(time.Hour)
			n, err := catalog.PruneHistory(t.Context(), store, "a", 15*time.Minute)
			require.NoError(t, err)
			require.Equal(t, 5, n)
		}}, "a", blind)
		require.ErrorIs(t, err, catalog.ErrUnknownEffect)
		cur, _, err := catalog.ReadManifest(t.Context(), store, "a")
		require.NoError(t, err)
		require.Len(t, cur.Tombstones, 2, "not applied again")
	})
}

// late holds the first put of the manifest back and reports a failure; release lets it take effect.
type late struct {
	objstore.Store
	release func() error
}

func (l *late) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if l.release == nil && strings.HasSuffix(k, "/manifest.json") {
		b, err := io.ReadAll(body)
		l.release = func() error {
			_, err := l.Store.Put(ctx, k, strings.NewReader(string(b)), cond)
			return err
		}
		return "", errors.Join(err, errFault)
	}
	return l.Store.Put(ctx, k, body, cond)
}

// TestCommitLandsLate: a swap whose failure was reported takes effect after the manifest was read
// again, while the next attempt is made.
func TestCommitLandsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &late{Store: newStore(t, nil)}
		n := 0
		m, err := catalog.Commit(t.Context(), store, "a", func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			if n++; n == 2 {
				require.NoError(t, store.release())
			}
			return blind(m, time.Now())
		})
		require.NoError(t, err)
		cur, _, err := catalog.ReadManifest(t.Context(), store, "a")
		require.NoError(t, err)
		require.Equal(t, cur.ID, m.ID)
		require.Len(t, cur.Tombstones, 1, "the first attempt took effect, so the second must not")
	})
}

// TestCommitErrorWhileUnsure: an error after a swap with unknown effect does not hide it.
func TestCommitErrorWhileUnsure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := &memstore.Script{}
		store := newStore(t, script.Next)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := catalog.Commit(ctx, &between{store, cancel}, "a", blind)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, catalog.ErrUnknownEffect)
		script.Add(toManifest, memstore.Fault{Err: errFault, When: memstore.Before})
		_, err = catalog.Commit(t.Context(), store, "a", func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			if script.Left() == 0 {
				return m, catalog.ErrConflict
			}
			return blind(m, time.Now())
		})
		require.ErrorIs(t, err, catalog.ErrUnknownEffect)
		require.ErrorIs(t, err, catalog.ErrConflict)
	})
}

// unsteady fails the next swaps of a manifest, before and after the effect by turns.
type unsteady struct {
	objstore.Store
	left int // failures
}

func (u *unsteady) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if u.left == 0 || !strings.HasSuffix(k, "/manifest.json") {
		return u.Store.Put(ctx, k, body, cond)
	}
	u.left--
	if u.left%2 == 0 {
		return "", errFault
	}
	_, _ = u.Store.Put(ctx, k, body, cond)
	return "", errFault
}

// TestCommitRaces: committers race over a store that fails as often as a commit bears it, before
// and after the effect; nothing is lost or applied twice.
func TestCommitRaces(t *testing.T) {
	const committers, each, borne = 4, 8, 3
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, nil)
		results := make(chan error, committers*each)
		for i := range committers {
			go func() {
				for n := range each {
					flaky := &unsteady{store, (i + n) % (borne + 1)}
					_, err := catalog.Commit(t.Context(), flaky, "a", func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
						time.Sleep(time.Duration(i) * time.Millisecond)
						return tick(i*each+n)(m, time.Now())
					})
					results <- err
				}
			}()
		}
		for range committers * each {
			require.NoError(t, <-results, "a change that was applied twice would conflict with itself")
		}
		m, _, err := catalog.ReadManifest(t.Context(), store, "a")
		require.NoError(t, err)
		require.Len(t, m.Consumed, committers*each)
		require.Equal(t, uint64(committers*each), m.Generation)
	})
}

// TestCommitTimes: the time of what a manifest superseded is that of the commit, even if the
// committer slept before it.
func TestCommitTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := &memstore.Script{}
		store := newStore(t, script.Next)
		wake := make(chan struct{})
		script.Add(toManifest, memstore.Fault{Until: wake})
		go func() {
			time.Sleep(time.Hour)
			close(wake)
		}()
		began := time.Now()
		commit(t, store, tick(0))
		m, _, err := catalog.ReadManifest(t.Context(), store, "a")
		require.NoError(t, err)
		require.Equal(t, began.Add(time.Hour).UnixMilli(), m.Consumed[0].At)
		time.Sleep(time.Hour)
		m = commit(t, store, tick(1))
		require.Equal(t, began.Add(time.Hour).UnixMilli(), m.Consumed[0].At, "successors keep it")
	})
}

func TestReadManifestRefuses(t *testing.T) {
	store := newStore(t, nil)
	for i, s := range []string{"", "{", `{"version":3}`, `{"version":0}`, `[]`} {
		tenant, want := fmt.Sprint(i), catalog.ErrFormat
		if strings.Contains(s, "3") {
			want = checksum.ErrUnknownVersion
		}
		put(t, store, key.Manifest(tenant), s)
		_, _, err := catalog.ReadManifest(t.Context(), store, tenant)
		require.ErrorIs(t, err, want, s)
		_, err = catalog.Take(t.Context(), store, tenant, 0, 1)
		require.ErrorIs(t, err, want, s)
		before := store.Keys()
		_, err = catalog.Commit(t.Context(), store, tenant, tick(0))
		require.ErrorIs(t, err, want, s)
		require.True(t, slices.Equal(before, store.Keys()))
	}
}
