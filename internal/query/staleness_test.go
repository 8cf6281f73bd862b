package query_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// listingStore counts listings and reads of manifests, and can hold listings up.
type listingStore struct {
	objstore.Store
	lists, manifests atomic.Int64
	hold             chan struct{} // nil: listings go through
	fail             error
}

func (s *listingStore) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		s.lists.Add(1)
		if s.hold != nil {
			select {
			case <-s.hold:
			case <-ctx.Done():
				yield(objstore.Object{}, ctx.Err())
				return
			}
		}
		if s.fail != nil {
			yield(objstore.Object{}, s.fail)
			return
		}
		s.Store.List(ctx, prefix, after)(yield)
	}
}

func (s *listingStore) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if strings.HasSuffix(k, "/manifest.json") {
		s.manifests.Add(1)
	}
	return s.Store.Get(ctx, k, offset, length)
}

// stale is a lake whose reads share snapshots for a second of the clock now.
func staleLake(t *testing.T, store objstore.Store, now func() time.Time, s query.Settings) *laketest.Lake {
	t.Helper()
	s.MaxStaleness = time.Second
	st, err := query.New(s, store, nil, slog.New(slog.DiscardHandler), now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return &laketest.Lake{Stage: st, TB: t, Store: store}
}

func one(t int64) []segment.Row {
	return []segment.Row{{Labels: laketest.Metric("m"), Floats: []segment.Float{{T: t, V: float64(t)}}}}
}

// found returns the number of samples that a read finds.
func found(t *testing.T, ctx context.Context, l *laketest.Lake, mint, maxt int64) int {
	t.Helper()
	q, err := l.Querier(mint, maxt)
	require.NoError(t, err)
	set := q.Select(ctx, true, nil, laketest.Equal(model.MetricNameLabel, "m"))
	n := 0
	for set.Next() {
		it := set.At().Iterator(nil)
		for it.Next() != 0 {
			n++
		}
	}
	require.NoError(t, set.Err())
	return n
}

func TestStaleness(t *testing.T) {
	store := &listingStore{Store: laketest.NewDir(t)}
	now := laketest.Now()
	l := staleLake(t, store, func() time.Time { return now }, query.Settings{})
	const hour, window = int64(3_600_000), key.WindowMillis
	ctx := t.Context()
	asOf := func(at time.Time) context.Context { return request.WithAsOf(ctx, at) }
	other := tenant.With(ctx, "other")
	l.Write(tenant.Default, one(hour))
	for _, s := range []struct {
		name       string
		after      time.Duration // since the step before
		write      int64         // a sample's time, 0 = none
		ctx        context.Context
		mint, maxt int64
		want       int  // samples
		lists      bool // the store is listed
	}{
		{"first", 0, 0, ctx, 0, hour, 1, true},
		{"the same range", 900 * time.Millisecond, hour + 1, ctx, 0, hour + 1, 1, false},
		{"a part of its windows", 0, 0, ctx, hour + 1, hour + 1, 0, false},
		{"all of its window", 0, 0, ctx, 0, window - 1, 1, false},
		{"beyond its windows", 0, 0, ctx, 0, window, 2, true},
		{"within the wider one", 900 * time.Millisecond, hour + 2, ctx, 0, hour + 2, 2, false},
		{"up to the limit", 100 * time.Millisecond, 0, ctx, 0, hour + 2, 2, false},
		{"older than the limit", time.Millisecond, 0, ctx, 0, hour + 2, 3, true},
		{"another tenant", 0, 0, other, 0, hour + 2, 0, true},
		{"as of a time", 0, 0, asOf(now.Add(time.Hour)), 0, hour + 2, 3, true},
		{"as of the same time", 0, 0, asOf(now.Add(time.Hour)), 0, hour + 2, 3, false},
		{"as of another time", 0, 0, asOf(now.Add(-time.Hour)), 0, hour + 2, 0, true},
		{"the first tenant still", 0, 0, ctx, 0, hour + 2, 3, false},
		{"no time at all", 0, 0, ctx, 5, 4, 0, false},
	} {
		t.Run(s.name, func(t *testing.T) {
			now = now.Add(s.after)
			if s.write != 0 {
				l.Write(tenant.Default, one(s.write))
			}
			before := store.lists.Load()
			require.Equal(t, s.want, found(t, s.ctx, l, s.mint, s.maxt))
			require.Equal(t, s.lists, store.lists.Load() > before)
		})
	}
}

// TestRangesShareSnapshots: reads of several ranges soon use one snapshot, which later ones take of
// all that was asked for since.
func TestRangesShareSnapshots(t *testing.T) {
	store := &listingStore{Store: laketest.NewDir(t)}
	now := laketest.Now()
	l := staleLake(t, store, func() time.Time { return now }, query.Settings{})
	const window = key.WindowMillis
	for i := range int64(4) {
		l.Write(tenant.Default, one(i*window))
	}
	lists := func(windows ...int64) int64 {
		before := store.lists.Load()
		for _, w := range windows {
			require.Equal(t, 1, found(t, t.Context(), l, w*window, (w+1)*window-1))
		}
		return store.lists.Load() - before
	}
	require.Equal(t, int64(2), lists(0, 3, 0, 2, 1, 3), "the second one has all")
	now = now.Add(2 * time.Second)
	require.Equal(t, int64(1), lists(3, 0, 2), "asked for before")
	now = now.Add(2 * time.Second)
	require.Equal(t, int64(1), lists(2, 0))
	now = now.Add(2 * time.Second)
	require.Equal(t, int64(2), lists(2, 3), "3 was not asked for lately")
}

// TestNoStaleness: by default a read sees what was stored before it began.
func TestNoStaleness(t *testing.T) {
	store := &listingStore{Store: laketest.NewDir(t)}
	l := laketest.New(t, store, query.Settings{})
	for i := range int64(3) {
		l.Write(tenant.Default, one(i+1))
		require.Equal(t, int(i+1), found(t, t.Context(), l, 0, 100))
		require.Equal(t, i+1, store.lists.Load())
	}
	require.Equal(t, int64(4), store.manifests.Load(), "one more by a process that knows no manifest yet")
}

// TestGoneObjectEndsStaleness: a read whose objects were deleted takes a new snapshot, which later
// reads use.
func TestGoneObjectEndsStaleness(t *testing.T) {
	dir := laketest.NewDir(t)
	store := &listingStore{Store: dir}
	l := staleLake(t, store, laketest.Now, query.Settings{CacheBytes: 1, FooterCacheBytes: 1, IndexCacheBytes: 1})
	write := func() {
		for i := range int64(3) {
			l.Write(tenant.Default, one(i+1))
		}
	}
	write()
	require.Equal(t, 3, found(t, t.Context(), l, 0, 10))
	var old []string
	for o, err := range dir.List(t.Context(), "v1/", "") {
		require.NoError(t, err)
		old = append(old, o.Key)
	}
	write()
	for _, k := range old {
		require.NoError(t, dir.Delete(t.Context(), k))
	}
	require.Equal(t, int64(1), store.lists.Load())
	require.Equal(t, 3, found(t, t.Context(), l, 0, 10))
	require.Equal(t, int64(2), store.lists.Load())
	require.Equal(t, 3, found(t, t.Context(), l, 0, 10))
	require.Equal(t, int64(2), store.lists.Load())
}

// TestSnapshotsAreShared: reads that begin while a snapshot is taken wait for it, and use it unless
// it is too old by then.
func TestSnapshotsAreShared(t *testing.T) {
	dir := laketest.NewDir(t)
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		late   time.Duration // from the first read to the others
		giveUp bool          // the first one
		fail   error
		lists  int64
	}{
		{"at once", 0, false, nil, 1},
		{"within the limit", time.Second, false, nil, 1},
		{"beyond the limit", time.Second + 1, false, nil, 2},
		{"the first gives up", 0, true, nil, 2},
		{"it fails", 0, false, boom, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &listingStore{Store: dir, hold: make(chan struct{}), fail: tc.fail}
				l := staleLake(t, store, time.Now, query.Settings{})
				read := func(ctx context.Context) chan error {
					out := make(chan error, 1)
					go func() {
						q, err := l.Querier(0, 10)
						if err == nil {
							_, _, err = q.LabelNames(ctx, nil)
						}
						out <- err
					}()
					synctest.Wait()
					return out
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := read(ctx)
				time.Sleep(tc.late)
				others := []chan error{read(t.Context()), read(t.Context())}
				require.Equal(t, int64(1), store.lists.Load())
				if tc.giveUp {
					cancel()
					require.ErrorIs(t, <-first, context.Canceled)
				}
				close(store.hold)
				if !tc.giveUp {
					require.ErrorIs(t, <-first, tc.fail)
				}
				for _, o := range others {
					require.ErrorIs(t, <-o, tc.fail)
				}
				require.Equal(t, tc.lists, store.lists.Load())
			})
		})
	}
}
