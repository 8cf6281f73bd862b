package ingest

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestDirectRetries fails a write before and after its effect: sent again, the request changes no
// answer.
func TestDirectRetries(t *testing.T) {
	for _, tc := range []struct {
		name     string
		fault    memstore.Fault
		segments int
	}{
		{"before", memstore.Fault{Err: errDown, When: memstore.Before}, 1},
		{"after", memstore.Fault{Err: errDown, When: memstore.After}, 2},
		{"slow down", memstore.Fault{Err: memstore.Status(503), When: memstore.Before}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, version protocol) {
				l := calmIn(t, Direct)
				l.faults.Add(memstore.On(memstore.Put), tc.fault)
				require.Equal(t, http.StatusInternalServerError, l.send(version, everything()).Code)
				l.later.Add(int64(10 * time.Second))
				l.ok(version, everything())
				require.Len(t, l.keys(anonymous), tc.segments)
				require.Equal(t, want(t, version, everything()), l.read(anonymous))
			})
		})
	}
}

// TestStoreThatTakesNoWrites: its senders wait, and do not learn its cause.
func TestStoreThatTakesNoWrites(t *testing.T) {
	for _, mode := range []Mode{Direct, Grouped} {
		l := calmIn(t, mode)
		l.faults.Add(memstore.On(memstore.Put), memstore.Fault{Err: fmt.Errorf("%w: the disk of host x", objstore.ErrReadOnly)})
		w := l.send(protocolV1, everything())
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		l.undisclosed(w.Body.String(), "host x")
		l.ok(protocolV1, everything())
	}
}

// TestDirectNamesAreNew: no request finds the segment of another one, not even of the same bytes at
// the same time. A deletion may be between them.
func TestDirectNamesAreNew(t *testing.T) {
	l := calmIn(t, Direct)
	for n := range 3 {
		l.ok(protocolV1, []item{gauge("m", at(someTime, 1))})
		require.Len(t, l.keys(anonymous), n+1)
	}
}

// TestRetryOfManyWindows fails one of a request's segments at a time: sent again, the request
// changes no answer.
func TestRetryOfManyWindows(t *testing.T) {
	it := gauge("m")
	const n = 5
	for i := range int64(n) {
		it.Floats = append([]segment.Float{at(someTime-i*key.WindowMillis, float64(i))}, it.Floats...)
	}
	for failing := range n {
		l := calmIn(t, Direct)
		puts := 0
		l.faults.Add(func(c memstore.Call) bool { puts++; return puts == failing+1 }, memstore.Fault{Err: errDown, When: memstore.When(failing % 2)})
		require.Equal(t, http.StatusInternalServerError, l.send(protocolV1, []item{it}).Code)
		l.ok(protocolV1, []item{it})
		require.Equal(t, want(t, protocolV1, []item{it}), l.read(anonymous))
	}
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
