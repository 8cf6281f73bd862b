package ingest

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

func (l *lake) generation() *remotewrite.Generation {
	l.stage.mu.Lock()
	defer l.stage.mu.Unlock()
	return l.stage.tenants[anonymous].known.Load().Generation
}

// TestGenerationOfAWindow learns metadata anew when the clock enters another window, and label sets
// as well if fewer than three quarters of them were used in the window before.
func TestGenerationOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := quick()
		set.TenantIdle = 100 * time.Hour
		l := wall(t, set)
		a := describedAt(time.Now().UnixMilli(), "a", "gauge", "help")
		l.ok(protocolV1, []item{a})
		first := l.generation()
		time.Sleep(2*time.Hour - 1)
		l.ok(protocolV1, []item{a})
		require.Same(t, first, l.generation())
		time.Sleep(time.Nanosecond)
		l.ok(protocolV1, []item{a}) // decoded before the flush that ends the generation
		synctest.Wait()
		require.NotSame(t, first, l.generation())
		require.Same(t, first.Table, l.generation().Table)
		l.ok(protocolV1, []item{a})
		require.Equal(t, [][]segment.Metadata{{a.Meta}, nil, nil, {a.Meta}}, l.metadata())

		use := func(names ...string) {
			for _, name := range names {
				l.ok(protocolV1, []item{gauge(name, at(time.Now().UnixMilli(), 1))})
			}
			synctest.Wait()
		}
		use("b", "c", "d", "a", "b")
		time.Sleep(2 * time.Hour)
		use("a", "a", "c", "d")
		require.Equal(t, 4, l.generation().Table.Len(), "all were used")
		time.Sleep(2 * time.Hour)
		use("a", "a", "d")
		require.Same(t, first.Table, l.generation().Table, "three of four were used")
		time.Sleep(2 * time.Hour)
		use("a", "b")
		require.NotSame(t, first.Table, l.generation().Table, "two of four were used")
		require.Equal(t, 1, l.generation().Table.Len())
	})
}

// TestGenerationsInOneGroup flushes requests together that were decoded before and after a
// rotation: the later one wins.
func TestGenerationsInOneGroup(t *testing.T) {
	bubble(t, func(t *testing.T) (*lake, map[string]content) {
		set := DefaultSettings()
		set.FlushTimeout, set.SettleDelay, set.TenantIdle = 24*time.Hour, 48*time.Hour, 24*time.Hour
		l := wall(t, set)
		seldom := gauge("seldom", at(time.Now().UnixMilli(), 0))
		l.ok(protocolV1, []item{seldom})
		time.Sleep(2 * time.Hour)
		begin := time.Now().UnixMilli()
		l.ok(protocolV1, []item{seldom}) // ends the first generation
		synctest.Wait()
		sample := func(name string, v float64) item { return gauge(name, at(begin, v)) }
		release := l.hold()
		a := l.concurrently()
		a.send(protocolV1, sample("m", 0))
		synctest.Wait()
		first := l.generation()
		time.Sleep(3 * time.Hour)
		slow, finish := newSlowBody(packed(t, encodeV1([]item{sample("slow", 3), sample("m", 3)})))
		go func() { a.got <- l.serve(request(slow, -1)) }() // lets the group wait
		synctest.Wait()
		a.send(protocolV1, sample("m", 1), sample("old", 1))
		synctest.Wait()
		release()
		synctest.Wait()
		require.NotSame(t, first, l.generation())
		a.send(protocolV2, sample("new", 2), sample("m", 2))
		synctest.Wait()
		finish()
		require.Equal(t, map[int]int{204: 4}, a.codes(4))
		require.Len(t, l.keys(anonymous), 2+3, "one segment of the first group, one of each table of the second")
		return l, want(t, protocolV1, []item{seldom, sample("m", 3), sample("old", 1), sample("new", 2), sample("slow", 3)})
	})
}

// TestGenerationOfBytes learns anew when the label sets, or the metadata, have grown too large.
func TestGenerationOfBytes(t *testing.T) {
	many := []item{gauge("m", at(someTime, 1))}
	for i := range 1000 {
		many = append(many, gauge(fmt.Sprint("m", i), at(someTime, 1)))
	}
	wordy := described("a", "gauge", long(4000))
	for _, tc := range []struct {
		name  string
		items []item
		max   int64
		same  bool
	}{
		{"few", many[:1], 100_000, true},
		{"many series", many, 100_000, false},
		{"much metadata", []item{wordy}, 4000, false},
		{"some metadata", []item{wordy}, 10_000, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := quick()
			set.MaxSeriesBytes = tc.max
			l := newLake(t, set, func() time.Time { return time.UnixMilli(someTime) })
			l.ok(protocolV1, []item{gauge("first", at(someTime, 1))})
			first := l.generation()
			l.ok(protocolV1, tc.items)
			l.ok(protocolV1, tc.items) // its flush comes after the rotation that the one before led to
			require.Equal(t, tc.same, first == l.generation())
			require.Equal(t, want(t, protocolV1, append(slices.Clone(tc.items), gauge("first", at(someTime, 1)))), l.read(anonymous))
		})
	}
}

// TestIdleTenant is forgotten, and comes back.
func TestIdleTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := quick()
		set.BodyGrace = 4 * set.TenantIdle
		l := wall(t, set)
		count := func() int {
			synctest.Wait()
			l.stage.mu.Lock()
			defer l.stage.mu.Unlock()
			require.InDelta(t, len(l.stage.tenants), testutil.ToFloat64(l.stage.met.tenants), 0)
			return len(l.stage.tenants)
		}
		a := describedAt(time.Now().UnixMilli(), "a", "gauge", "help")
		l.ok(protocolV1, []item{a})
		idle := l.stage.set.TenantIdle
		time.Sleep(idle - 1)
		l.ok(protocolV1, []item{nowSample(1)}, "X-Scope-OrgID", "busy")
		require.Equal(t, 2, count())
		time.Sleep(time.Nanosecond)
		require.Equal(t, 1, count())
		l.ok(protocolV1, []item{a})
		require.Equal(t, 2, count())
		require.Equal(t, [][]segment.Metadata{{a.Meta}, {a.Meta}}, l.metadata())
		// A request that takes longer than the idle time keeps its tenant.
		slow, finish := newSlowBody(packed(t, encodeV1([]item{nowSample(1)})))
		answered := make(chan int, 1)
		go func() { answered <- l.serve(request(slow, -1)).Code }()
		time.Sleep(3 * idle)
		require.Equal(t, 1, count())
		finish()
		require.Equal(t, 204, <-answered)
	})
}

// TestIDsAscend: whatever the clock and the randomness do, the milliseconds ascend.
func TestIDsAscend(t *testing.T) {
	for name, r := range map[string]io.Reader{"no entropy": repeating(0), "the same entropy": repeating(0xfe), "all of it": repeating(0xff)} {
		t.Run(name, func(t *testing.T) {
			ids := newIDSource(r)
			last := ulid.ULID{}
			for i := range 1000 {
				id := ids.next(time.UnixMilli(someTime + int64(i%7) - int64(i%3)*1000))
				require.Greater(t, id.Time(), last.Time())
				last = id
			}
			require.InDelta(t, someTime, int64(last.Time()), 2000)
		})
	}
}

type repeating byte

func (r repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}
