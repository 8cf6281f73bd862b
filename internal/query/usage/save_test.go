package usage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/query/usage"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

const object = "v1/a/usage/queries.json"

var saving = usage.Settings{Bytes: 1 << 20, Interval: 10 * time.Minute}

func put(t *testing.T, store objstore.Store, key, body string) {
	t.Helper()
	_, err := store.Put(t.Context(), key, strings.NewReader(body), objstore.Condition{})
	require.NoError(t, err)
}

// known returns a store that has an object of the tenant a.
func known(t *testing.T, s memstore.Settings) *memstore.Store {
	t.Helper()
	store := memstore.New(s)
	put(t, store, "v1/a/manifest.json", "{}")
	return store
}

func read(t *testing.T, store objstore.Store) string {
	t.Helper()
	b, _, err := objstore.ReadAll(t.Context(), store, object)
	require.NoError(t, err)
	return string(b)
}

// TestSaves: counts outlive processes, and those of several processes are added.
func TestSaves(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	start := at.at
	a := newCounter(saving, store, at.now)
	at.after(time.Second)
	b := newCounter(saving, store, at.now)
	a.Query("a", wanted(t, `up{job="x"}`))
	b.Query("a", wanted(t, `up + {__name__=~"node_.+"}`))
	a.Save(t.Context())
	at.after(time.Minute)
	a.Query("a", wanted(t, "up"))
	r := of(t, a, "a")
	require.Equal(t, uint64(2), metric(r, "up").Queries, "in the store, and in memory")
	a.Save(t.Context())
	b.Save(t.Context())
	require.Zero(t, of(t, a, "none").Used-of(t, b, "none").Used)
	at.after(time.Hour)
	r = of(t, newCounter(saving, store, at.now), "a")
	require.Equal(t, start, r.Since)
	require.Equal(t, usage.Asked{Queries: 3, Last: start.UnixMilli() + 61_000}, metric(r, "up"))
	require.Equal(t, usage.Asked{Queries: 1, Last: start.UnixMilli() + 1_000}, metric(r, "node_load1"))
	require.Equal(t, uint64(1), label(r, "job").Queries)
}

// TestObject has the golden bytes of schemas/usage.md.
func TestObject(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	c := newCounter(saving, store, at.now)
	c.Query("a", wanted(t, `up{job="x"} + {__name__=~"node_.+"}`))
	c.Spend(took("dashboard", "x", "9f86d081"), true)
	c.Save(t.Context())
	got := read(t, store)
	var saves struct{ Saves []string }
	require.NoError(t, json.Unmarshal([]byte(got), &saves))
	require.Len(t, saves.Saves, 1)
	want, err := checksum.Append([]byte(`{"version":1,"since":1700000000000,"names":{"up":{"queries":1,"last":1700000000000}},` +
		`"patterns":{"node_.+":{"queries":1,"last":1700000000000}},"labels":{"job":{"queries":1,"last":1700000000000}},` +
		`"spent":{"2023-11-14":{"dashboard/x":{"title":"X","queries":1,"microseconds":1000000,"bytes":1000,"requests":10},` +
		`"token/9f86d081":{"queries":1,"microseconds":1000000,"bytes":1000,"requests":10}}},"saves":["` + saves.Saves[0] + `"]}`))
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// TestTenantsWithoutObjects: a name in a request makes no object. A report begins the counts of a
// tenant that has one.
func TestTenantsWithoutObjects(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	c := newCounter(saving, store, at.now)
	c.Query("made-up", wanted(t, "up"))
	of(t, c, "another")
	r := of(t, c, "a")
	require.Positive(t, r.Used)
	begin := at.at
	at.after(time.Minute)
	c.Save(t.Context())
	var keys []string
	for o, err := range store.List(t.Context(), "", "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	require.Equal(t, []string{"v1/a/manifest.json", object}, keys)
	r = of(t, newCounter(usage.Settings{}, store, at.now), "made-up")
	require.Zero(t, metric(r, "up"))
	r = of(t, newCounter(saving, store, at.now), "a")
	require.Equal(t, begin, r.Since)
	before := read(t, store)
	c.Save(t.Context())
	require.Equal(t, before, read(t, store), "nothing was counted since")
}

// TestFaults: whatever requests fail, before or after their effect, every query counts once.
func TestFaults(t *testing.T) {
	for calls := range 40 {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			at, n, armed := newClock(), 0, false
			store := known(t, memstore.Settings{Faults: func(memstore.Call) memstore.Fault {
				if !armed {
					return memstore.Fault{}
				}
				n++
				if (n+calls)%3 == 0 {
					return memstore.Fault{Err: errors.New("before"), When: memstore.Before}
				}
				if (n+calls)%5 == 0 {
					return memstore.Fault{Err: errors.New("after"), When: memstore.After}
				}
				return memstore.Fault{}
			}})
			a, b := newCounter(saving, store, at.now), newCounter(saving, store, at.now)
			asked := uint64(0)
			for range 20 {
				for _, c := range []*usage.Counter{a, b} {
					c.Query("a", wanted(t, "up"))
					asked++
					armed = true
					c.Save(t.Context())
					armed = false
				}
				own := of(t, a, "a")
				require.LessOrEqual(t, metric(own, "up").Queries, asked)
			}
			for range 2 { // what had failed, and what was asked for since
				a.Save(t.Context())
				b.Save(t.Context())
			}
			r := of(t, newCounter(usage.Settings{}, store, at.now), "a")
			require.Equal(t, asked, metric(r, "up").Queries)
		})
	}
}

// TestDamaged: a damaged object is an error of reports until the next save replaces it. An object
// of a later version stays.
func TestDamaged(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	c := newCounter(saving, store, at.now)
	c.Query("a", wanted(t, "up"))
	c.Save(t.Context())
	at.after(time.Hour)
	c.Query("a", wanted(t, "down"))
	begin := of(t, c, "a")
	require.Equal(t, at.at.Add(-time.Hour), begin.Since)
	put(t, store, object, read(t, store)[:100])
	_, err := c.Of(t.Context(), "a")
	require.ErrorContains(t, err, "read "+object)
	c.Save(t.Context())
	r := of(t, c, "a")
	require.Equal(t, at.at.Add(-time.Hour), r.Since, "the begin of what the batch had")
	require.Zero(t, metric(r, "up"))
	require.Equal(t, uint64(1), metric(r, "down").Queries)

	later, err := checksum.Append([]byte(`{"version":2}`))
	require.NoError(t, err)
	put(t, store, object, string(later))
	c.Query("a", wanted(t, "down"))
	c.Save(t.Context())
	require.Equal(t, string(later), read(t, store))
	_, err = c.Of(t.Context(), "a")
	require.ErrorIs(t, err, usage.ErrVersion)
}

// TestEntriesEnd: what was not asked for in 400 days is removed, and what was asked for least
// recently if there is no room. The report says since when all is counted.
func TestEntriesEnd(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	s := saving
	s.Bytes = 2_000
	c := newCounter(s, store, at.now)
	var first time.Time
	for i := range 20 {
		c.Query("a", wanted(t, fmt.Sprintf("metric_%02d", i)))
		if i == 0 {
			first = at.at
		}
		c.Save(t.Context())
		at.after(time.Hour)
	}
	r := of(t, c, "a")
	require.Zero(t, metric(r, "metric_00"))
	require.Equal(t, uint64(1), metric(r, "metric_19").Queries)
	require.Greater(t, r.Since, first)
	for i := range 20 {
		name := fmt.Sprintf("metric_%02d", i)
		require.Equal(t, first.Add(time.Duration(i)*time.Hour).Before(r.Since), metric(r, name) == usage.Asked{}, name)
	}
	at.after(400*24*time.Hour - 3*time.Hour)
	c.Query("a", wanted(t, "new"))
	c.Save(t.Context())
	r = of(t, c, "a")
	require.Zero(t, metric(r, "metric_16"))
	require.Equal(t, uint64(1), metric(r, "metric_17").Queries)
	require.Equal(t, first.Add(16*time.Hour+time.Millisecond), r.Since)
}

// TestMaybeSave: a save takes its turn, and a part of the time of a request.
func TestMaybeSave(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	c := newCounter(saving, store, at.now)
	saved := func() bool {
		_, _, err := objstore.ReadAll(t.Context(), store, object)
		return err == nil
	}
	c.Query("a", wanted(t, "up"))
	at.after(saving.Interval - time.Millisecond)
	c.MaybeSave(t.Context())
	require.False(t, saved())
	at.after(time.Millisecond)
	short, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
	defer cancel()
	c.MaybeSave(short)
	require.False(t, saved(), "a tenth of the time is too short")
	c.MaybeSave(t.Context())
	require.True(t, saved())

	never := newCounter(usage.Settings{Bytes: 1 << 20}, store, at.now)
	before := read(t, store)
	never.Query("a", wanted(t, "up"))
	at.after(24 * time.Hour)
	never.MaybeSave(t.Context())
	require.Equal(t, before, read(t, store))
}
