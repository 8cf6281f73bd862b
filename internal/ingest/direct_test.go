package ingest

import (
	"math"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore/memstore"
	"github.com/promlake/promlake/internal/segment"
)

// TestRetriesFindTheirSegments fails a write before and after its effect: sent again, the request stores nothing twice.
func TestRetriesFindTheirSegments(t *testing.T) {
	for _, tc := range []struct {
		name     string
		fault    memstore.Fault
		code     int
		existing float64
	}{
		{"before", memstore.Fault{Err: errDown, When: memstore.Before}, http.StatusInternalServerError, 0},
		{"after", memstore.Fault{Err: errDown, When: memstore.After}, http.StatusInternalServerError, 1},
		{"slow down", memstore.Fault{Err: memstore.Status(503), When: memstore.Before}, http.StatusInternalServerError, 0},
		{"precondition after a lost answer", memstore.Fault{Err: memstore.Status(412), When: memstore.After}, http.StatusNoContent, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, version protocol) {
				l := calmIn(t, Direct)
				l.faults.Add(memstore.On(memstore.Put), tc.fault)
				require.Equal(t, tc.code, l.send(version, everything()).Code)
				l.later.Add(int64(10 * time.Second))
				l.ok(version, everything())
				require.Len(t, l.keys(anonymous), 1)
				require.Equal(t, want(t, version, everything()), l.read(anonymous))
				require.InDelta(t, tc.existing, testutil.ToFloat64(l.stage.met.existing), 0)
			})
		})
	}
}

// TestRetryOfManyWindows fails one of a request's segments at a time: in the end each is there once.
func TestRetryOfManyWindows(t *testing.T) {
	it := gauge("m")
	const n = 5
	for i := range int64(n) {
		it.floats = append([]segment.Float{at(someTime-i*key.WindowMillis, float64(i))}, it.floats...)
	}
	for failing := range n {
		l := calmIn(t, Direct)
		puts := 0
		l.faults.Add(func(c memstore.Call) bool { puts++; return puts == failing+1 }, memstore.Fault{Err: errDown, When: memstore.When(failing % 2)})
		require.Equal(t, http.StatusInternalServerError, l.send(protocolV1, []item{it}).Code)
		l.ok(protocolV1, []item{it})
		require.Len(t, l.keys(anonymous), n)
		require.Equal(t, want(t, protocolV1, []item{it}), l.read(anonymous))
	}
}

// TestIdentity: whatever decides what a segment holds is part of its identifier.
func TestIdentity(t *testing.T) {
	l := calmIn(t, Direct)
	body := packed(t, encodeV1([]item{gauge("m", at(someTime, 1))}))
	l.post(body)
	l.post(body)
	require.Len(t, l.store.Keys(), 1)
	l.post(packed(t, encodeV1([]item{gauge("m", at(someTime, 2))})))
	require.Len(t, l.store.Keys(), 2, "other bytes")
	l.post(body, "X-Scope-OrgID", "team-a")
	require.Len(t, l.keys("team-a"), 1)
	require.NotEqual(t, l.keys("team-a")[0].ID, l.keys(anonymous)[0].ID, "another tenant")

	// The end of the grace period passes between two attempts: the second one holds more, and is stored.
	limit := someTime + DefaultSettings().Limits.CreationGracePeriod.Milliseconds()
	late := []item{gauge("late", at(someTime-time.Hour.Milliseconds(), 1), at(limit+1, 2))}
	require.Equal(t, http.StatusBadRequest, l.send(protocolV1, late).Code)
	l.later.Add(int64(time.Millisecond))
	l.ok(protocolV1, late)
	require.Equal(t, want(t, protocolV1, late)[lsetText(late[0].lset)], l.read(anonymous)[lsetText(late[0].lset)])
}

func TestContentID(t *testing.T) {
	const tolerance = 20 * time.Second
	now := time.UnixMilli(someTime + 7_500) // someTime is a multiple of the tolerance
	for _, tc := range []struct {
		name   string
		newest int64
		want   int64
	}{
		{"now", someTime + 7_500, someTime + 5_500},
		{"a little ago", someTime + 1_234, someTime - 766},
		{"just within the tolerance", someTime - 10_500, someTime - 12_500},
		{"older", someTime - 10_501, someTime},
		{"of a clock that is ahead", someTime + 9_500, someTime + 7_500},
		{"in the future", someTime + 9_501, someTime},
		{"no sample", math.MinInt64, someTime},
	} {
		id := contentID(now, tolerance, tc.newest, digest{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
		require.Equal(t, uint64(tc.want), id.Time(), tc.name)
		require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, id.Entropy(), tc.name)
	}
	require.Equal(t, uint64(someTime+7_500), contentID(now, 0, someTime, digest{}).Time(), "no tolerance")
}

// TestContentIDKeepsTheRules: the identifier's time lies in the tolerance before now, which merges count on, and of two writes that are
// further apart the later one has the larger identifier, so that its samples count.
func TestContentIDKeepsTheRules(t *testing.T) {
	const tolerance = 20 * time.Second
	rng := rand.New(rand.NewPCG(1, 2))
	id := func(now time.Time) ulid.ULID {
		var hash digest
		for i := range hash {
			hash[i] = byte(rng.Uint32())
		}
		return contentID(now, tolerance, now.UnixMilli()+rng.Int64N(100_000)-80_000, hash)
	}
	for range 10_000 {
		now := time.UnixMilli(someTime + rng.Int64N(100_000))
		first := id(now)
		require.False(t, ulid.Time(first.Time()).After(now))
		require.False(t, ulid.Time(first.Time()).Before(now.Add(-tolerance)))
		second := id(now.Add(tolerance + time.Duration(1+rng.Int64N(1e4))*time.Millisecond))
		require.Positive(t, second.Compare(first))
	}
}

// TestRepeatedRequestsKeepTheirID: sent again within the tolerance, a live request has the same identifier.
func TestRepeatedRequestsKeepTheirID(t *testing.T) {
	l := calmIn(t, Direct)
	it := []item{gauge("m", at(someTime, 1), at(someTime-15_000, 0))}
	for range 18 {
		l.ok(protocolV1, it)
		l.later.Add(int64(time.Second))
	}
	require.Len(t, l.store.Keys(), 1)
	l.tick()
	l.ok(protocolV1, it)
	require.Len(t, l.store.Keys(), 2, "much later it is another write")
	require.Equal(t, want(t, protocolV1, []item{gauge("m", at(someTime-15_000, 0), at(someTime, 1))}), l.read(anonymous))
}

// TestDirectTimeout ends a write that hangs.
func TestDirectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := quick()
		set.Mode = Direct
		l := wall(t, set)
		defer l.hold()()
		begin := time.Now()
		require.Equal(t, http.StatusInternalServerError, l.send(protocolV1, []item{nowSample(1)}).Code)
		require.Equal(t, set.FlushTimeout, time.Since(begin))
		l.ok(protocolV1, []item{nowSample(2)})
	})
}

// TestDirectIsConcurrent writes the requests of one tenant at the same time.
func TestDirectIsConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := quick()
		set.Mode = Direct
		l := wall(t, set)
		a := l.concurrently()
		var release []func()
		for i := range 5 {
			release = append(release, l.hold())
			a.send(protocols[i%2], nowSample(float64(i)))
		}
		synctest.Wait()
		require.Zero(t, l.faults.Left(), "all puts are under way")
		for _, f := range release {
			f()
		}
		require.Equal(t, map[int]int{204: 5}, a.codes(5))
	})
}

// TestIdleTenantsWithoutFlusher are forgotten when others come.
func TestIdleTenantsWithoutFlusher(t *testing.T) {
	set := quick()
	set.MaxTenants = 2
	l := calmWith(t, Direct, set)
	it := []item{gauge("m", at(someTime, 1))}
	l.ok(protocolV1, it, "X-Scope-OrgID", "a")
	l.ok(protocolV1, it, "X-Scope-OrgID", "b")
	require.Equal(t, http.StatusTooManyRequests, l.send(protocolV1, it, "X-Scope-OrgID", "c").Code)
	l.later.Add(int64(set.TenantIdle))
	l.ok(protocolV1, it, "X-Scope-OrgID", "b")
	l.ok(protocolV1, it, "X-Scope-OrgID", "c")
	require.Len(t, l.stage.tenants, 2)
	require.NotContains(t, l.stage.tenants, "a")
}
