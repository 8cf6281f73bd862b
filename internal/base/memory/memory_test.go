package memory

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// fixture is a budget of a process whose usage the test sets.
type fixture struct {
	*Budget
	used, freed atomic.Int64
	reg         *prometheus.Registry
}

func newFixture(limit int64) *fixture {
	f := &fixture{reg: prometheus.NewRegistry()}
	f.Budget = New(limit, Probe{Usage: f.used.Load, Free: func() { f.freed.Add(1) }, Now: advancing()}, f.reg)
	return f
}

// advancing returns a clock that advances by more than a tick at each read, so that every
// measurement is new.
func advancing() func() time.Time {
	var n atomic.Int64
	return func() time.Time { return time.Unix(0, n.Add(int64(2*tick))) }
}

func TestBudgetRefusesBeyondTheLimit(t *testing.T) {
	b := newFixture(100)
	require.NoError(t, b.TryAcquire(60))
	err := b.TryAcquire(41)
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.ErrorIs(t, err, ErrMemory)
	require.Equal(t, Error{Limit: 100, Needed: 101}, *typed)
	require.Contains(t, err.Error(), "100")
	require.Contains(t, err.Error(), Flag)
	require.NoError(t, b.TryAcquire(40))
	b.Release(40)

	b.used.Store(90) // by other code, and by memory that is not counted
	require.NoError(t, b.TryAcquire(10))
	require.ErrorIs(t, b.TryAcquire(11), ErrMemory)
	b.used.Store(101)
	require.ErrorIs(t, b.TryAcquire(0), ErrMemory)

	require.NoError(t, testutil.GatherAndCompare(b.reg, strings.NewReader(`
# HELP promlake_memory_acquired_bytes Memory that requests have acquired and not yet released.
# TYPE promlake_memory_acquired_bytes gauge
promlake_memory_acquired_bytes 70
# HELP promlake_memory_limit_bytes Memory that the process may use (--memory-limit).
# TYPE promlake_memory_limit_bytes gauge
promlake_memory_limit_bytes 100
# HELP promlake_memory_refused_total Acquisitions of memory that were refused at the limit.
# TYPE promlake_memory_refused_total counter
promlake_memory_refused_total 3
`), "promlake_memory_acquired_bytes", "promlake_memory_limit_bytes", "promlake_memory_refused_total"))
}

// TestAcquiredBytesCountUntilTheyAreMeasured: several requests between two measurements do not get
// the same room.
func TestAcquiredBytesCountUntilTheyAreMeasured(t *testing.T) {
	now := time.Unix(1, 0)
	b := New(100, Probe{Usage: func() int64 { return 50 }, Now: func() time.Time { return now }}, nil)
	require.NoError(t, b.TryAcquire(30))
	require.ErrorIs(t, b.TryAcquire(30), ErrMemory)
	now = now.Add(tick)
	require.NoError(t, b.TryAcquire(30), "what was acquired is within what was measured now")
}

func TestAcquireWaitsForRoom(t *testing.T) {
	b := newFixture(100)
	require.NoError(t, b.TryAcquire(100))
	got := make(chan error, 1)
	go func() { got <- b.Acquire(t.Context(), 50) }()
	b.Release(60)
	require.NoError(t, <-got)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.Acquire(ctx, 50)
	require.ErrorIs(t, err, ErrMemory)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAcquireWithin(t *testing.T) {
	b := newFixture(100)
	require.NoError(t, b.AcquireWithin(t.Context(), 0, 100), "it need not wait")
	err := b.AcquireWithin(t.Context(), time.Millisecond, 50)
	require.ErrorIs(t, err, ErrMemory)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	got := make(chan error, 1)
	go func() { got <- b.AcquireWithin(t.Context(), time.Hour, 50) }()
	b.Release(60)
	require.NoError(t, <-got)
}

// TestWatchGoesOn: Watch rests once no work has started for a tick, and watches the next one.
func TestWatchGoesOn(t *testing.T) {
	b := newFixture(1000)
	go b.Watch(t.Context())
	for range 3 {
		_, short, err := b.Start(t.Context())
		require.NoError(t, err)
		short.End()
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.seen == b.started && !b.watched
		}, time.Minute, time.Millisecond)
	}
	ctx, long, err := b.Start(t.Context())
	require.NoError(t, err)
	defer long.End()
	b.used.Store(1001)
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), ErrMemory)
}

func TestNilBudgetHasNoLimit(t *testing.T) {
	b := New(0, Probe{}, nil)
	require.Nil(t, b)
	require.NoError(t, b.TryAcquire(1<<60))
	require.NoError(t, b.Acquire(t.Context(), 1<<60))
	b.Release(1 << 60)
	require.NoError(t, b.AcquireWithin(t.Context(), 0, 1<<60))
	b.Watch(t.Context())
	require.Zero(t, b.Limit())
	ctx, w, err := b.Start(t.Context())
	require.NoError(t, err)
	require.Nil(t, Of(ctx))
	require.NoError(t, w.Charge(1<<60))
	w.End()
}

// TestWatchEndsTheLargestFirst: works are ended one after another, each after the previous one has
// stopped or its time is over, and garbage is collected when no work is left to end.
func TestWatchEndsTheLargestFirst(t *testing.T) {
	b := newFixture(1000)
	go b.Watch(t.Context())
	var works []*Work
	var ctxs []context.Context
	for _, n := range []int64{10, 300, 10} {
		ctx, w, err := b.Start(t.Context())
		require.NoError(t, err)
		require.Same(t, w, Of(ctx))
		require.NoError(t, w.Charge(n))
		works, ctxs = append(works, w), append(ctxs, ctx)
	}
	b.used.Store(1001)
	for _, i := range []int{1, 2, 0} { // the largest, then the latest
		<-ctxs[i].Done()
		var typed *Error
		require.ErrorAs(t, context.Cause(ctxs[i]), &typed)
		require.Equal(t, Error{Limit: 1000, Needed: 1001 + 1000/reserveShare, Ended: true}, *typed)
		works[i].End()
	}
	require.Eventually(t, func() bool { return b.freed.Load() > 0 }, time.Minute, time.Millisecond)
	_, _, err := b.Start(t.Context())
	require.ErrorIs(t, err, ErrMemory, "no work begins above the limit")
	require.Equal(t, 3.0, testutil.ToFloat64(b.metrics.ended))
	b.used.Store(0)
	require.NoError(t, b.TryAcquire(1000), "all that the works held is given back")
}

// TestWatchEndsBeforeTheLimit: ended work allocates until it stops, so it is ended within a reserve
// below the limit.
func TestWatchEndsBeforeTheLimit(t *testing.T) {
	b := newFixture(1000)
	ctx, w, err := b.Start(t.Context())
	require.NoError(t, err)
	defer w.End()
	b.used.Store(1000 - 1000/reserveShare)
	b.check(time.Time{})
	require.NoError(t, ctx.Err())
	b.used.Add(1)
	b.check(time.Time{})
	var typed *Error
	require.ErrorAs(t, context.Cause(ctx), &typed)
	require.Equal(t, Error{Limit: 1000, Needed: 1001, Ended: true}, *typed)
	_, _, err = b.Start(t.Context())
	require.ErrorAs(t, err, &typed)
	require.Equal(t, Error{Limit: 1000, Needed: 1001}, *typed, "no work begins that would be ended at once")
}

// TestOutside: what is allocated outside of the budget learns what room there is below the reserve,
// and that there is no bound while no work runs.
func TestOutside(t *testing.T) {
	b := newFixture(1600)
	var rooms []int64
	b.Outside(func(room int64) { rooms = append(rooms, room) })
	_, w, err := b.Start(t.Context())
	require.NoError(t, err)
	b.used.Store(600)
	b.check(time.Time{})
	require.Equal(t, []int64{1600 - 1600/reserveShare - 600}, rooms)
	var typed *Error
	require.ErrorAs(t, w.Refused(), &typed)
	require.Equal(t, Error{Limit: 1600, Needed: 1601}, *typed, "there is room again")
	b.used.Store(1700)
	require.ErrorAs(t, w.Refused(), &typed)
	require.Equal(t, Error{Limit: 1600, Needed: 1700 + 1600/reserveShare}, *typed)
	require.Equal(t, 2.0, testutil.ToFloat64(b.metrics.refused))
	w.End()
	b.used.Store(0)
	b.check(time.Time{})
	b.check(time.Time{})
	require.Equal(t, int64(math.MaxInt64/2), rooms[len(rooms)-1])
	require.NoError(t, (*Work)(nil).Refused())
	(*Budget)(nil).Outside(nil)
}

// TestWatchEndsAsMuchAsIsAboveTheLimit: it counts what works hold outside of the budget, and ends
// several at once if one does not hold enough.
func TestWatchEndsAsMuchAsIsAboveTheLimit(t *testing.T) {
	b := newFixture(1000)
	var ctxs []context.Context
	for i, outside := range []int64{200, 0, 400} {
		ctx, w, err := b.Start(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Charge(int64(i)))
		w.Holds(func() int64 { return outside })
		ctxs = append(ctxs, ctx)
	}
	b.used.Store(1500)
	b.check(time.Time{})
	require.ErrorIs(t, context.Cause(ctxs[2]), ErrMemory)
	require.ErrorIs(t, context.Cause(ctxs[0]), ErrMemory)
	require.NoError(t, ctxs[1].Err())
}

func TestWorkHoldsUntilItsEnd(t *testing.T) {
	b := newFixture(100)
	ctx, w, err := b.Start(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Charge(70))
	require.ErrorIs(t, w.Charge(31), ErrMemory)
	require.NoError(t, b.TryAcquire(30))
	b.Release(30)
	w.End()
	w.End()
	require.NoError(t, w.Charge(100), "after its end it counts nothing")
	require.NoError(t, b.TryAcquire(100))
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.False(t, errors.Is(context.Cause(ctx), ErrMemory))
}

func TestMachineBytes(t *testing.T) {
	const gib = 1 << 30
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known": {nil, 0},
		"machine":       {map[string]string{"proc/meminfo": "MemTotal:       4194304 kB\nMemFree: 1 kB\n"}, 4 * gib},
		"container":     {map[string]string{"proc/meminfo": "MemTotal: 4194304 kB\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, gib},
		"none":          {map[string]string{"proc/meminfo": "MemTotal: 4194304 kB\n", "sys/fs/cgroup/memory.max": "max\n"}, 4 * gib},
		"slice above": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/promlake.service\n", "sys/fs/cgroup/system.slice/promlake.service/memory.max": "max\n",
			"sys/fs/cgroup/system.slice/memory.max": "2147483648\n", "proc/meminfo": "MemTotal: 4194304 kB\n",
		}, 2 * gib},
		"version 1": {map[string]string{
			"proc/self/cgroup":                                       "11:cpu,cpuacct:/x\n9:memory:/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":             "9223372036854771712\n",
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes":  "536870912\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/memory.limit_in_bytes": "1\n",
		}, gib / 2},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range tc.files {
				file = filepath.Join(root, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			}
			require.Equal(t, tc.want, machineBytes(root))
		})
	}
}

func TestResident(t *testing.T) {
	debug.FreeOSMemory() // so that nothing of earlier tests is returned meanwhile
	before := resident()
	require.Positive(t, before)
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	require.Greater(t, resident(), before+32<<20)
	require.NotZero(t, block[0])
}
