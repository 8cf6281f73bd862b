package tenantapp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/tenantapp"
	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

const name = "team-a"

// world is a store whose clock the test sets.
type world struct {
	*memstore.Store
	t     *testing.T
	now   time.Time
	fault func(memstore.Call) memstore.Fault
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 1, 2, 1, 0, 0, 0, time.UTC)}
	w.Store = memstore.New(memstore.Settings{Now: w.clock, Faults: func(c memstore.Call) memstore.Fault {
		if w.fault != nil {
			return w.fault(c)
		}
		return memstore.Fault{}
	}})
	return w
}

func (w *world) clock() time.Time { return w.now }

func (w *world) put(k string) {
	w.t.Helper()
	_, err := w.Put(w.t.Context(), k, strings.NewReader(k), objstore.Condition{})
	require.NoError(w.t, err)
}

func (w *world) id() ulid.ULID { return ulid.MustNew(ulid.Timestamp(w.now), ulid.DefaultEntropy()) }

func (w *world) segment() catalog.SegmentID {
	id := catalog.SegmentID{Window: key.WindowOf(w.now.UnixMilli()), ID: w.id()}
	w.put(id.Key(name).String())
	return id
}

// compact makes a block of segments, as a job does that begins now, and returns its commit.
func (w *world) compact(segments ...catalog.SegmentID) (commit func() error) {
	b := catalog.Block{Level: key.L2h, Window: segments[0].Window, ID: w.id(), MinT: int64(segments[0].Window), MaxT: int64(segments[0].Window), Series: 1, Samples: 1, Bytes: 1}
	for _, s := range segments {
		if s.ID.Compare(b.Rank) > 0 {
			b.Rank = s.ID
		}
	}
	m, _, err := catalog.ReadManifest(w.t.Context(), w, name)
	require.NoError(w.t, err)
	b.DeletesThrough = m.LastTombstone
	for _, f := range []string{"series.parquet", "meta.json"} {
		w.put(b.Key(name).File(f))
	}
	return func() error {
		_, err := catalog.Commit(w.t.Context(), w, name, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			return m.Replace(w.now, catalog.Sources{Segments: segments}, []catalog.Block{b})
		})
		return err
	}
}

// filled is a world in which a tenant has all kinds of objects, and another tenant some.
func filled(t *testing.T) *world {
	w := newWorld(t)
	a, b := w.segment(), w.segment()
	w.segment()
	w.now = w.now.Add(time.Minute)
	require.NoError(t, w.compact(a, b)())
	_, err := catalog.Commit(t.Context(), w, name, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		m, _, err := m.Delete(now, catalog.Tombstone{Matchers: []catalog.Matcher{{Type: "=", Name: "job", Value: "x"}}, MinT: 0, MaxT: key.MaxTime}, nil)
		return m, err
	})
	require.NoError(t, err)
	w.segment()
	w.put("v1/" + name + "/stray")
	w.put("v1/" + name + "b/segments/x")
	w.put("v1/team/segments/x")
	w.put("rules/" + name + ".json")
	w.put(key.RuleState(name, "n", "g"))
	w.put("rules/" + name + ".json.json") // of another tenant
	w.now = w.now.Add(time.Hour)
	return w
}

func (w *world) delete() (tenantapp.Result, error) {
	return tenantapp.Delete(w.t.Context(), w, name, 10*time.Minute)
}

var others = []string{"rules/" + name + ".json.json", "v1/" + name + "b/segments/x", "v1/team/segments/x"}

func TestDelete(t *testing.T) {
	w := filled(t)
	s, err := tenantapp.Look(t.Context(), w, name)
	require.NoError(t, err)
	require.Equal(t, []int64{4, 2, 2, 1, 2}, []int64{s.Segments.Objects, s.Blocks.Objects, s.History.Objects - 1, s.Manifest.Objects, s.Other.Objects - 1})
	p, err := cost.ReadPrices("us-east-1")
	require.NoError(t, err)
	price := s.Price(p)
	require.Equal(t, tenantapp.Cost{Lists: 11, Puts: 2, Gets: 6, Deletes: s.Total().Objects, Dollars: price.Dollars, Monthly: price.Monthly}, price)
	require.InDelta(t, 13*5e-6+6*4e-7, price.Dollars, 1e-12)

	r, err := w.delete()
	require.NoError(t, err)
	require.EqualValues(t, 9, r.Deleted)
	require.Equal(t, w.now.Add(20*time.Minute), r.KeptUntil, "a job under way must not commit")
	for _, k := range w.Keys() {
		require.True(t, slices.Contains(others, k) || strings.HasPrefix(k, "v1/"+name+"/manifest"), k)
	}

	w.now = r.KeptUntil.Add(-time.Millisecond)
	r, err = w.delete()
	require.NoError(t, err)
	require.NotZero(t, r.KeptUntil)
	w.now = w.now.Add(time.Millisecond)
	r, err = w.delete()
	require.NoError(t, err)
	require.Zero(t, r.KeptUntil)
	require.Equal(t, others, w.Keys())
	r, err = w.delete()
	require.NoError(t, err)
	require.Zero(t, r, "nothing is left to do")
}

// TestDeleteRefusesABusyTenant: no object of a tenant that is being written is deleted, unless the
// removal is forced.
func TestDeleteRefusesABusyTenant(t *testing.T) {
	w := filled(t)
	w.segment()
	w.now = w.now.Add(10*time.Minute - time.Second)
	before := w.Keys()
	_, err := w.delete()
	require.ErrorIs(t, err, tenantapp.ErrBusy)
	require.ErrorContains(t, err, "its newest segment is 9m59s old, want 10m0s: stop its writers first, or add --force")
	require.Equal(t, before, w.Keys())
	r, err := tenantapp.Delete(t.Context(), w, name, 0)
	require.NoError(t, err)
	require.EqualValues(t, 10, r.Deleted)
}

// TestDeleteUnderWriters: a removal during writes ends, and reports that it has not removed
// everything.
func TestDeleteUnderWriters(t *testing.T) {
	w := filled(t)
	writing := false
	w.fault = func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Delete && !writing {
			writing = true
			w.segment()
			writing = false
		}
		return memstore.Fault{}
	}
	_, err := tenantapp.Delete(t.Context(), &serial{Store: w, turn: make(chan struct{}, 1)}, name, 0)
	require.ErrorIs(t, err, tenantapp.ErrBusy)
}

// TestCompactionUnderWayBringsNothingBack: a job that has read the tenant's segments commits after
// they are gone.
func TestCompactionUnderWayBringsNothingBack(t *testing.T) {
	for _, late := range []time.Duration{0, catalog.MaxJobAge, 20 * time.Minute, time.Hour} {
		t.Run(late.String(), func(t *testing.T) {
			w := newWorld(t)
			a, b := w.segment(), w.segment()
			w.now = w.now.Add(time.Hour)
			commit := w.compact(a, b)
			r, err := w.delete()
			require.NoError(t, err)
			require.False(t, r.KeptUntil.IsZero())
			for w.now = w.now.Add(late); ; w.now = r.KeptUntil {
				require.ErrorIs(t, commit(), catalog.ErrConflict)
				if r, err = w.delete(); r.KeptUntil.IsZero() {
					break
				}
			}
			require.NoError(t, err)
			require.Empty(t, w.Keys())
			require.ErrorIs(t, commit(), catalog.ErrConflict)
			require.Empty(t, w.Keys())
		})
	}
}

// sees takes a snapshot and returns its content. An object that is missing is an error, as for
// every reader.
func (w *world) sees() (string, error) {
	snap, err := catalog.Take(context.Background(), w, name, key.MinTime, key.MaxTime)
	if err != nil {
		return "", err
	}
	for _, s := range snap.Segments {
		if _, _, err := w.Get(context.Background(), s.String(), 0, -1); err != nil {
			return "", err
		}
	}
	for _, b := range snap.Blocks {
		if _, _, err := w.Get(context.Background(), b.Key(name).File("meta.json"), 0, -1); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d segments, %d blocks, %d tombstones", len(snap.Segments), len(snap.Blocks), len(snap.Tombstones)), nil
}

// TestReadersSeeAllOrNothing: a reader that begins at any point of the removal sees everything, or
// no data; never a part of it, and never what had been deleted before.
func TestReadersSeeAllOrNothing(t *testing.T) {
	w := filled(t)
	all, err := w.sees()
	require.NoError(t, err)
	require.Equal(t, "2 segments, 1 blocks, 1 tombstones", all)
	seen := map[string]int{}
	reading := false
	w.fault = func(memstore.Call) memstore.Fault {
		if !reading {
			reading = true
			got, err := w.sees()
			require.NoError(t, err)
			seen[got]++
			reading = false
		}
		return memstore.Fault{}
	}
	r, err := w.deleteAlone()
	require.NoError(t, err)
	w.now = r.KeptUntil
	_, err = w.deleteAlone()
	require.NoError(t, err)
	require.Len(t, seen, 2, "%v", seen)
	for _, want := range []string{all, "0 segments, 0 blocks, 1 tombstones"} {
		require.Positive(t, seen[want], want)
	}
}

// deleteAlone deletes object by object, so that readers are not concurrent in the test itself.
func (w *world) deleteAlone() (tenantapp.Result, error) {
	return tenantapp.Delete(w.t.Context(), &serial{Store: w, turn: make(chan struct{}, 1)}, name, 10*time.Minute)
}

// serial is a store that does one deletion at a time.
type serial struct {
	objstore.Store
	turn chan struct{}
}

func (s *serial) Delete(ctx context.Context, k string) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.Store.Delete(ctx, k)
}

// TestDeleteGoesOnAfterACrash: whichever request is the last one, repeating the removal ends it.
func TestDeleteGoesOnAfterACrash(t *testing.T) {
	dead := errors.New("the process is dead")
	for n := range 60 {
		for _, when := range []memstore.When{memstore.Before, memstore.After} {
			w := filled(t)
			asked := 0
			w.fault = func(memstore.Call) memstore.Fault {
				if asked++; asked > n {
					return memstore.Fault{Err: dead, When: when}
				}
				return memstore.Fault{}
			}
			ctx := t.Context()
			for range 2 {
				r, err := tenantapp.Delete(ctx, &serial{Store: w, turn: make(chan struct{}, 1)}, name, time.Minute)
				if err != nil {
					require.ErrorIs(t, err, dead)
					break
				}
				if !r.KeptUntil.IsZero() {
					w.now = r.KeptUntil
				}
			}
			w.fault = nil
			got, err := w.sees()
			if err == nil && !strings.HasPrefix(got, "0 segments, 0 blocks") {
				require.Equal(t, "2 segments, 1 blocks, 1 tombstones", got)
			}
			require.NoError(t, err, "after %d requests", n)
			for {
				r, err := w.delete()
				require.NoError(t, err)
				if r.KeptUntil.IsZero() {
					break
				}
				w.now = r.KeptUntil
			}
			require.Equal(t, others, w.Keys(), "after %d requests", n)
		}
	}
}
