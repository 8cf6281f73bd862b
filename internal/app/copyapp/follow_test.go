package copyapp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/copyapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
)

// witnessed is a busy store that keeps every answer that it ever gave.
type witnessed struct {
	*busy
	answers map[string]int // the number of the last step after which the source gave this answer
	n       int
}

func newWitnessed(t *testing.T, seed uint64) *witnessed {
	w := &witnessed{busy: newBusy(t, seed), answers: map[string]int{}}
	w.witness()
	w.stepped = w.witness
	return w
}

func (w *witnessed) witness() {
	w.n++
	w.answers[answer(w.t, w.store)] = w.n
}

func (w *witnessed) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// overwrite writes another value of one sample.
func (w *witnessed) overwrite() {
	at := day.Add(7 * time.Hour).UnixMilli()
	rows := []segment.Row{{Labels: labels.FromStrings("__name__", "over"), Floats: []segment.Float{{T: at, V: float64(w.n)}}}}
	id := ulid.MustNew(ulid.Timestamp(w.now.Add(-time.Duration(w.r.IntN(100))*time.Second)), ulid.DefaultEntropy())
	require.NoError(w.t, compacttest.Put(context.Background(), w.store, name, key.WindowOf(at), id, rows))
	w.witness()
}

// answer is all that a store answers, as text.
func answer(t *testing.T, s objstore.Store) string {
	a, err := compacttest.Read(context.Background(), s, name)
	require.NoError(t, err)
	return fmt.Sprint(a.Samples)
}

// observed is a replica of which a reader asks everything after each write: what it finds is what a
// crash at this request leaves.
type observed struct {
	*memstore.Store
	source *witnessed
	mu     sync.Mutex
	writes int

	live, deleted map[string]time.Time // by key: when it was live last, and when it was deleted
}

func newObserved(source *witnessed) *observed {
	return &observed{Store: memstore.New(memstore.Settings{Now: source.clock, DeletedForever: true}), source: source, live: map[string]time.Time{}, deleted: map[string]time.Time{}}
}

// see asks for everything after a write to a key.
func (o *observed) see(k string, at map[string]time.Time, when time.Time) {
	o.source.mu.Lock()
	defer o.source.mu.Unlock()
	at[k] = when
	o.writes++
	o.look(o.source.t)
	require.Contains(o.source.t, o.source.answers, answer(o.source.t, o.Store), "after %d writes", o.writes)
}

// look notes what is live. What is not may be deleted after a delay, and the manifest names it for
// as long again.
func (o *observed) look(t *testing.T) {
	snap, err := catalog.Take(context.Background(), o.Store, name, key.MinTime, key.MaxTime)
	require.NoError(t, err)
	for _, s := range snap.Segments {
		o.live[s.String()] = o.source.now
	}
	for k := range o.live {
		if b, _, err := key.ParseBlockFile(k); err != nil || !slices.ContainsFunc(snap.Manifest.Blocks, func(x catalog.Block) bool { return x.ID == b.ID }) {
			continue
		}
		o.live[k] = o.source.now
	}
	for k, at := range o.deleted {
		require.False(t, at.Before(o.live[k].Add(copyapp.ReplacedDelay)), "%s was deleted too early", k)
		seg, err := key.ParseSegment(k)
		if _, named := snap.Manifest.ConsumedAt(catalog.SegmentIDOf(seg)); err == nil && o.source.now.Before(at.Add(copyapp.ReplacedDelay)) {
			require.True(t, named, "%s was forgotten too early", k)
		}
	}
}

func (o *observed) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	etag, err := o.Store.Put(ctx, k, body, cond)
	o.see(k, o.live, time.Time{})
	return etag, err
}

func (o *observed) Delete(ctx context.Context, k string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	when := o.source.clock()
	err := o.Store.Delete(ctx, k)
	o.see(k, o.deleted, when)
	return err
}

// TestFollow: after every single write of a follower, the replica answers what the source answered
// at some moment, bit by bit, and at the end of a pass what it answered during the pass: while
// others write, overwrite, compact, delete and collect garbage in the source, also while nobody
// follows for hours. In the end the replica has no other objects than the source's live ones.
func TestFollow(t *testing.T) {
	for seed := range uint64(3) {
		w := newWitnessed(t, seed)
		to := newObserved(w)
		f := copyapp.NewFollower(watched{w.busy}, to, nil)
		pass := func() copyapp.Pass {
			began := w.answers[answer(t, w.store)]
			p, err := f.Pass(t.Context())
			require.NoError(t, err, "seed %d", seed)
			require.GreaterOrEqual(t, w.answers[answer(t, to.Store)], began, "seed %d: the recovery point is wrong", seed)
			return p
		}
		var deleted int64
		for round := range 24 {
			for range w.r.IntN(6) {
				w.step()
				w.overwrite()
			}
			switch round % 8 {
			case 3:
				w.deleteSeries(fmt.Sprint(round % 3))
				w.witness()
			case 5:
				for range 8 {
					w.now = w.now.Add(25 * time.Minute)
					w.step()
				}
			case 7:
				f = copyapp.NewFollower(watched{w.busy}, to, nil) // the process has died
			}
			deleted += pass().Deleted
		}
		require.Positive(t, deleted)
		w.every = 1 << 30 // all is quiet
		for range 4 {
			w.now = w.now.Add(copyapp.ReplacedDelay + time.Minute)
			pass()
		}
		require.Equal(t, answer(t, w.store), answer(t, to.Store))
		for _, own := range []string{copyapp.MarkPrefix + name, copyapp.PointKey} {
			require.NoError(t, to.Store.Delete(t.Context(), own))
		}
		live(t, to.Store)
		require.Empty(t, to.Violations())
	}
}

// TestFollowOrder: of two values of a sample, the one with the higher rank counts in the replica,
// too, if that came first.
func TestFollowOrder(t *testing.T) {
	now := day.Add(time.Hour)
	clock := func() time.Time { return now }
	from, to := memstore.New(memstore.Settings{Now: clock, Resolution: time.Second}), memstore.New(memstore.Settings{Now: clock})
	f := copyapp.NewFollower(from, to, nil)
	for n := range 3 {
		rows := []segment.Row{{Labels: labels.FromStrings("__name__", "up"), Floats: []segment.Float{{T: day.UnixMilli(), V: float64(n)}}}}
		require.NoError(t, compacttest.Put(t.Context(), from, name, key.WindowOf(day.UnixMilli()), ulid.MustNew(uint64(10-n), ulid.DefaultEntropy()), rows))
		now = now.Add(time.Second)
		_, err := f.Pass(t.Context())
		require.NoError(t, err)
		require.Equal(t, answer(t, from), answer(t, to))
		now = now.Add(-time.Minute)
	}
}

// TestFollowGoesOn: a follower that died at any request is followed by one that brings the replica
// to the state of the source.
func TestFollowGoesOn(t *testing.T) {
	dead := errors.New("the process is dead")
	w := newWitnessed(t, 5)
	left, when := -1, memstore.Before
	var mu sync.Mutex
	to := memstore.New(memstore.Settings{Now: w.clock, Faults: func(memstore.Call) memstore.Fault {
		mu.Lock()
		defer mu.Unlock()
		if left--; left < 0 && left > -1<<20 {
			return memstore.Fault{Err: dead, When: when}
		}
		return memstore.Fault{}
	}})
	alive := -1 << 21
	whole := 0
	for n := range 60 {
		for range 1 + n%3 {
			w.step()
			w.overwrite()
		}
		left, when = n%20, memstore.When(n%2)
		_, err := copyapp.NewFollower(w.store, to, nil).Pass(t.Context())
		left = alive
		if err == nil {
			whole++
		} else {
			require.ErrorIs(t, err, dead)
		}
		require.Contains(t, w.answers, answer(t, to), "crash at request %d", n%20)
		if n%4 == 3 {
			_, err := copyapp.NewFollower(w.store, to, nil).Pass(t.Context())
			require.NoError(t, err)
			require.Equal(t, answer(t, w.store), answer(t, to), "after a crash at request %d", n%20)
		}
	}
	require.Less(t, whole, 30)
}

// TestFollowReadsItsVersion: a recovery point of another version is not taken for one of this.
func TestFollowReadsItsVersion(t *testing.T) {
	to := memstore.New(memstore.Settings{})
	_, err := to.Put(t.Context(), copyapp.PointKey, strings.NewReader(`{"version":2,"recovery_point":"2026-11-30T02:59:18Z"}`), objstore.Condition{})
	require.NoError(t, err)
	_, err = copyapp.NewFollower(memstore.New(memstore.Settings{}), to, nil).Pass(t.Context())
	require.ErrorContains(t, err, "promlake-follow.json has version 2, this program reads 1")
}

// TestFollowRefuses: a destination that somebody else has written to, before or since, is left as
// it is.
func TestFollowRefuses(t *testing.T) {
	put := func(s objstore.Store, k, text string) {
		_, err := s.Put(t.Context(), k, strings.NewReader(text), objstore.Condition{})
		require.NoError(t, err)
	}
	id := ulid.MustNew(1, nil)
	for why, other := range map[string]func(objstore.Store){
		"store.json": func(s objstore.Store) { put(s, key.Identity, "{}") },
		"segments": func(s objstore.Store) {
			put(s, key.Segment{Tenant: name, Window: key.WindowOf(0), ID: id}.String(), "x")
		},
		"manifests": func(s objstore.Store) { put(s, key.ManifestCopy(name, id), "{}") },
		"precede": func(s objstore.Store) {
			_, err := catalog.Delete(t.Context(), s, name, catalog.Deletion{
				Sets: [][]catalog.Matcher{{{Type: "=", Name: "a", Value: "b"}}}, MaxT: key.MaxTime,
			})
			require.NoError(t, err)
			for copied, err := range s.List(t.Context(), key.ManifestsPrefix(name), "") {
				require.NoError(t, err)
				require.NoError(t, s.Delete(t.Context(), copied.Key))
			}
		},
	} {
		w := newWitnessed(t, 2)
		w.write()
		to := memstore.New(memstore.Settings{Now: w.clock})
		f := copyapp.NewFollower(w.store, to, nil)
		_, err := f.Pass(t.Context())
		require.NoError(t, err)
		w.write()
		other(to)
		before := to.Keys()
		p, err := f.Pass(t.Context())
		require.ErrorIs(t, err, copyapp.ErrInUse, why)
		require.ErrorContains(t, err, why)
		require.Equal(t, before, to.Keys(), why)
		require.False(t, p.RecoveryPoint.IsZero())

		_, err = copyapp.NewFollower(w.store, to, nil).Pass(t.Context())
		require.ErrorIs(t, err, copyapp.ErrInUse, why)
	}
	w, to := newWitnessed(t, 2), memstore.New(memstore.Settings{})
	w.write()
	_, err := copyapp.Tenant(t.Context(), w.store, to, name)
	require.NoError(t, err)
	_, err = copyapp.NewFollower(w.store, to, nil).Pass(t.Context())
	require.ErrorIs(t, err, copyapp.ErrOccupied)
}

// TestFollowMutable: what is overwritten or deleted in the source is so in the replica, and is sent
// only if it has changed. The recovery point is in the replica.
func TestFollowMutable(t *testing.T) {
	w := newWitnessed(t, 2)
	w.write()
	to := memstore.New(memstore.Settings{Now: w.clock})
	put := func(k, text string) {
		_, err := w.store.Put(t.Context(), k, strings.NewReader(text), objstore.Condition{})
		require.NoError(t, err)
	}
	a, b := key.Dashboard(name, "a"), key.Dashboard(name, "b")
	put(a, "{}")
	put(b, "{}")
	put(key.Rules(name), "rules")
	for n := range 3 {
		f := copyapp.NewFollower(w.store, to, nil)
		p, err := f.Pass(t.Context())
		require.NoError(t, err)
		require.Positive(t, p.Copied)
		raw, _, err := objstore.ReadAll(t.Context(), to, copyapp.PointKey)
		require.NoError(t, err)
		require.JSONEq(t, `{"version":1,"recovery_point":"`+p.RecoveryPoint.UTC().Format(time.RFC3339Nano)+`"}`, string(raw))
		text := fmt.Sprint(n)
		put(a, text)
		if n == 0 {
			require.NoError(t, w.store.Delete(t.Context(), b))
		}
		p, err = f.Pass(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, p.Copied)
		got, _, err := objstore.ReadAll(t.Context(), to, a)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.NotContains(t, to.Keys(), b)
		put(b, "{}")
		if n == 1 { // deleted while nobody follows
			require.NoError(t, w.store.Delete(t.Context(), key.Rules(name)))
		}
		p, err = f.Pass(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.store.Delete(t.Context(), b))
	}
	require.NotContains(t, to.Keys(), key.Rules(name))
}

// TestFollowRequests: a pass without changes sends few requests, however many objects there are,
// and one with a new segment some more.
func TestFollowRequests(t *testing.T) {
	w := newWitnessed(t, 2)
	to := memstore.New(memstore.Settings{Now: w.clock})
	f := copyapp.NewFollower(w.store, to, nil)
	requests := func() int64 {
		p, err := f.Pass(t.Context())
		require.NoError(t, err)
		return p.Requests
	}
	for range 100 {
		w.write()
	}
	first := requests()
	idle := requests()
	w.write()
	one := requests()
	for range 10 {
		w.write()
	}
	ten := requests()
	t.Logf("requests: %d with 100 new segments, %d with none, %d with 1, %d with 10", first, idle, one, ten)
	require.LessOrEqual(t, idle, int64(12))
	require.LessOrEqual(t, ten-one, int64(9*2))
}

// TestReplicate: a process that is no function makes a pass at its start.
func TestReplicate(t *testing.T) {
	w, to := newWitnessed(t, 2), t.TempDir()
	w.write()
	ready := make(chan struct{})
	close(ready)
	p := process.Parts{Store: w.store, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Ready: ready, Now: time.Now}
	stage, err := copyapp.Replicate(copyapp.Replica{Store: "file://" + to})(t.Context(), p)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(to, copyapp.PointKey))
		return err == nil
	}, 5*time.Minute, time.Millisecond)
	require.NoError(t, stage.Drain(t.Context()))
	require.NoError(t, stage.Close())
	replica, err := filestore.New(to)
	require.NoError(t, err)
	require.Equal(t, answer(t, w.store), answer(t, replica))
	_, err = copyapp.Replicate(copyapp.Replica{Store: "nothing://x"})(t.Context(), p)
	require.ErrorContains(t, err, "replica: ")
}
