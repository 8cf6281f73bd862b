package copyapp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/copyapp"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
)

const name = "team-a"

var day = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// busy is a store in which a writer and a compactor work whenever somebody else asks for something.
type busy struct {
	t       *testing.T
	store   *memstore.Store
	stage   *compact.Stage
	r       *rand.Rand
	now     time.Time
	written int
	acked   []int // numbers of samples

	mu    sync.Mutex
	every int // of how many requests to watched one comes after a step
	steps int

	stepped func() // is called after each step
}

// watched is the store as others see it: before some of their requests, the writer or the compactor
// works.
type watched struct{ *busy }

func (w watched) turn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.r.IntN(w.every) == 0 {
		w.step()
	}
}

func (w watched) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	w.turn()
	return w.store.Get(ctx, k, offset, length)
}

func (w watched) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	w.turn()
	return w.store.Put(ctx, k, body, cond)
}

func (w watched) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	w.turn()
	return w.store.List(ctx, prefix, startAfter)
}

func (w watched) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	w.turn()
	return w.store.ListFolders(ctx, prefix)
}

func (w watched) Delete(ctx context.Context, k string) error {
	w.turn()
	return w.store.Delete(ctx, k)
}

func (w watched) Now(ctx context.Context) (time.Time, error) {
	w.turn()
	return w.store.Now(ctx)
}

func newBusy(t *testing.T, seed uint64) *busy {
	b := &busy{t: t, stepped: func() {}, r: rand.New(rand.NewPCG(seed, 1)), now: day.Add(30 * time.Hour), every: 1 + int(seed%3)}
	b.store = memstore.New(memstore.Settings{Now: func() time.Time { return b.now }})
	s, err := compact.New(compact.Settings{
		Policy:        plan.Policy{SettleDelay: time.Minute, WindowDelay: time.Minute, LateDelay: time.Minute, MinPartSegments: 2},
		DeletionDelay: 10 * time.Minute, TempDir: t.TempDir(),
	}, b.store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), func() time.Time { return b.now })
	require.NoError(t, err)
	b.stage = s
	return b
}

// step lets time pass: something is written, or compacted, or garbage is collected.
func (b *busy) step() {
	b.steps++
	defer func() { b.stepped() }()
	b.now = b.now.Add(time.Duration(b.r.IntN(200)) * time.Second)
	if b.r.IntN(2) == 0 {
		b.write()
		return
	}
	_, err := b.stage.Cycle(context.Background())
	require.NoError(b.t, err)
}

// write acknowledges a sample with a number of its own.
func (b *busy) write() {
	n := b.written
	b.written++
	at := day.Add(time.Duration(n%20) * time.Hour).Add(time.Duration(n) * time.Second).UnixMilli()
	rows := []segment.Row{{
		Labels: labels.FromStrings("__name__", "up", "series", fmt.Sprint(n%3)), Floats: []segment.Float{{T: at, V: float64(n)}},
	}}
	id := ulid.MustNew(ulid.Timestamp(b.now), ulid.DefaultEntropy())
	require.NoError(b.t, compacttest.Put(context.Background(), b.store, name, key.WindowOf(at), id, rows))
	b.acked = append(b.acked, n)
}

func (b *busy) deleteSeries(series string) {
	_, err := catalog.Delete(context.Background(), b.store, name, catalog.Deletion{
		Sets: [][]catalog.Matcher{{{Type: "=", Name: "series", Value: series}}}, MaxT: key.MaxTime,
	})
	require.NoError(b.t, err)
}

// values are the numbers of the samples that a store has of each series.
func values(t *testing.T, s objstore.Store) map[string]int {
	a, err := compacttest.Read(t.Context(), s, name)
	require.NoError(t, err)
	out := map[string]int{}
	for series, samples := range a.Samples {
		out[series] = len(samples)
	}
	return out
}

// TestCopyWhileOthersWork: what was acknowledged before the copy began is in it, what was deleted
// is not, and the copy is whole: it can be read, compacted and copied back.
func TestCopyWhileOthersWork(t *testing.T) {
	worked := 0
	for seed := range uint64(12) {
		b := newBusy(t, seed)
		for range 60 {
			b.step()
		}
		b.deleteSeries("2")
		b.now = b.now.Add(time.Second)
		before := values(t, b.store)
		gone := labels.FromStrings("__name__", "up", "series", "2").String()
		require.NotContains(t, before, gone)

		var to objstore.Store = memstore.New(memstore.Settings{})
		if seed%5 == 0 {
			var err error
			to, err = filestore.New(t.TempDir())
			require.NoError(t, err)
		}
		r, err := copyapp.Tenant(t.Context(), watched{b}, to, name)
		require.NoError(t, err, "seed %d", seed)
		require.Positive(t, r.Copied)
		worked += b.steps - 60

		after := values(t, b.store)
		got := values(t, to)
		for series, n := range before {
			require.GreaterOrEqual(t, got[series], n, "seed %d: %s", seed, series)
			require.LessOrEqual(t, got[series], after[series], "seed %d: %s", seed, series)
		}
		require.LessOrEqual(t, got[gone], after[gone], "seed %d: what was deleted is back", seed)
		for o, err := range to.List(t.Context(), copyapp.MarkPrefix, "") {
			t.Errorf("a mark is left: %v %v", o, err)
		}
		live(t, to)

		// The restored store goes on: compaction changes no answer, and another copy is the same
		// again.
		restored := newBusy(t, seed)
		_, err = copyapp.Tenant(t.Context(), to, restored.store, name)
		require.NoError(t, err)
		restored.now = b.now.Add(30 * time.Hour)
		for range 5 {
			_, err := restored.stage.Cycle(t.Context())
			require.NoError(t, err)
			restored.now = restored.now.Add(time.Hour)
		}
		require.Equal(t, got, values(t, restored.store), "seed %d", seed)
	}
	require.Greater(t, worked, 20, "others must have worked meanwhile")
}

// live checks that a store has nothing but what its snapshot names.
func live(t *testing.T, s objstore.Store) {
	snap, err := catalog.Take(t.Context(), s, name, key.MinTime, key.MaxTime)
	require.NoError(t, err)
	prefixes := []string{key.Manifest(name)}
	for _, x := range snap.Segments {
		prefixes = append(prefixes, x.String())
	}
	for _, x := range snap.Manifest.Blocks {
		prefixes = append(prefixes, x.Key(name).Prefix())
	}
	for o, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		ok := false
		for _, p := range prefixes {
			ok = ok || strings.HasPrefix(o.Key, p)
		}
		require.True(t, ok, "the copy has %s", o.Key)
	}
}

// TestCopyMutable: the rules of a tenant, the counts of its queries, the states of its groups of
// pushed metrics and its dashboards are copied as they are when its data is, also by a copy that
// finds those of one that did not finish. Those of a destination in use are not replaced.
func TestCopyMutable(t *testing.T) {
	from, to := memstore.New(memstore.Settings{}), memstore.New(memstore.Settings{})
	put := func(store objstore.Store, k, text string) {
		_, err := store.Put(t.Context(), k, strings.NewReader(text), objstore.Condition{})
		require.NoError(t, err)
	}
	put(from, key.Rules(name), "new rules")
	put(from, key.Rules(name+".json"), "rules of another tenant")
	put(to, key.Rules(name), "old rules")
	group, former := key.Push(name, strings.Repeat("a", 32)), key.Push(name, strings.Repeat("b", 32))
	put(from, group, "series")
	put(from, key.Usage(name), "counts")
	dashboard := key.Dashboard(name, "a b")
	put(from, dashboard, "{}")
	put(to, former, "series of a group that was deleted since")
	_, err := copyapp.Tenant(t.Context(), from, to, name)
	require.ErrorIs(t, err, copyapp.ErrOccupied)
	put(to, copyapp.MarkPrefix+name, "")
	r, err := copyapp.Tenant(t.Context(), from, to, name)
	require.NoError(t, err)
	require.EqualValues(t, 4, r.Copied)
	for k, want := range map[string]string{key.Rules(name): "new rules", group: "series", key.Usage(name): "counts", dashboard: "{}"} {
		got, _, err := objstore.ReadAll(t.Context(), to, k)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	require.ElementsMatch(t, []string{key.Rules(name), group, key.Usage(name), dashboard}, to.Keys())
}

// TestCopyKeepsTheOrder: of two values of a sample the one that was written later counts in the
// copy, too, although its segment's identifier is the smaller one and copies share a second.
func TestCopyKeepsTheOrder(t *testing.T) {
	const windows = 12
	from := memstore.New(memstore.Settings{})
	for i := range windows {
		at := day.Add(time.Duration(2*i) * time.Hour).UnixMilli()
		for n := range 3 {
			rows := []segment.Row{{Labels: labels.FromStrings("__name__", "up"), Floats: []segment.Float{{T: at, V: float64(n)}}}}
			id := ulid.MustNew(ulid.Timestamp(day.Add(-time.Duration(n)*time.Minute)), ulid.DefaultEntropy())
			require.NoError(t, compacttest.Put(t.Context(), from, name, key.WindowOf(at), id, rows))
		}
	}
	want, err := compacttest.Read(t.Context(), from, name)
	require.NoError(t, err)
	to := memstore.New(memstore.Settings{Resolution: time.Second})
	_, err = copyapp.Tenant(t.Context(), from, to, name)
	require.NoError(t, err)
	got, err := compacttest.Read(t.Context(), to, name)
	require.NoError(t, err)
	require.Equal(t, want.Samples, got.Samples)
	for _, samples := range got.Samples {
		require.Len(t, samples, windows)
	}
}

// TestCopyGoesOn: a copy that was cut short at any request is ended by the next one, and what is
// stale in it goes.
func TestCopyGoesOn(t *testing.T) {
	dead := errors.New("the process is dead")
	for n := range 40 {
		b := newBusy(t, 7)
		for range 40 {
			b.step()
		}
		var asked atomic.Int64
		var dying bool
		to := memstore.New(memstore.Settings{Faults: func(memstore.Call) memstore.Fault {
			if asked.Add(1) > int64(n) && dying {
				return memstore.Fault{Err: dead, When: memstore.When(n % 2)}
			}
			return memstore.Fault{}
		}})
		dying = true
		_, err := copyapp.Tenant(t.Context(), b.store, to, name)
		dying = false
		if err == nil {
			require.Greater(t, n, 5)
			break
		}
		for range 30 { // what was copied is consumed, deleted and forgotten
			b.step()
		}
		b.deleteSeries("1")
		b.now = b.now.Add(time.Second)
		if _, err = copyapp.Tenant(t.Context(), b.store, to, name); errors.Is(err, copyapp.ErrOccupied) {
			require.Equal(t, memstore.After, memstore.When(n%2), "only the unmarking of a copy that is whole can have been the last")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, values(t, b.store), values(t, to), "after %d requests", n)
		live(t, to)
	}
}

// TestCopyTouchesNoOthers: a tenant that the destination has is not changed.
func TestCopyTouchesNoOthers(t *testing.T) {
	b := newBusy(t, 1)
	b.write()
	to := memstore.New(memstore.Settings{})
	_, err := to.Put(t.Context(), "v1/"+name+"/segments/x", strings.NewReader("x"), objstore.Condition{})
	require.NoError(t, err)
	_, err = copyapp.Tenant(t.Context(), b.store, to, name)
	require.ErrorIs(t, err, copyapp.ErrOccupied)
	require.Equal(t, []string{"v1/" + name + "/segments/x"}, to.Keys())
}

// TestCopyRefusesBlocksWithoutAllFiles: a block of which a file is gone, be it damage or a deletion
// under way, is no part of a copy that counts.
func TestCopyRefusesBlocksWithoutAllFiles(t *testing.T) {
	b := newBusy(t, 3)
	for len(values(t, b.store)) == 0 || len(blocks(t, b.store)) == 0 {
		b.step()
	}
	var files []string
	for o, err := range b.store.List(t.Context(), blocks(t, b.store)[0].Key(name).Prefix(), "") {
		require.NoError(t, err)
		files = append(files, o.Key)
	}
	require.Greater(t, len(files), 1)
	for _, file := range files {
		r, _, err := b.store.Get(t.Context(), file, 0, -1)
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, b.store.Delete(t.Context(), file))
		to := memstore.New(memstore.Settings{})
		_, err = copyapp.Tenant(t.Context(), b.store, to, name)
		require.ErrorIs(t, err, objstore.ErrNotFound, file)
		require.NotContains(t, to.Keys(), key.Manifest(name))
		_, err = b.store.Put(t.Context(), file, strings.NewReader(string(body)), objstore.Condition{})
		require.NoError(t, err)
	}
	_, err := copyapp.Tenant(t.Context(), b.store, memstore.New(memstore.Settings{}), name)
	require.NoError(t, err)
}

func blocks(t *testing.T, s objstore.Store) []catalog.Block {
	m, _, err := catalog.ReadManifest(t.Context(), s, name)
	require.NoError(t, err)
	return m.Blocks
}
