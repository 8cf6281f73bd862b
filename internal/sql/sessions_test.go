package sql

import (
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/query/duck"
)

// newRunner returns a runner of statements without a store.
func newRunner(t *testing.T) *Runner {
	r := New(Parts{
		Settings: Settings{Limits: Limits{MaxPlanBytes: 64 << 20}, MemoryBytes: 64 << 20, SpillBytes: 1 << 20, Threads: 2},
		Work:     &tempdir.WorkDir{Configured: t.TempDir()}, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { require.NoError(t, errors.Join(r.Close(), r.Work.Close())) })
	return r
}

// TestSessions: a tenant gets the session that it used last, another tenant never does, and those
// that may not be used again, or are too many, are closed.
func TestSessions(t *testing.T) {
	r := newRunner(t)
	s := &r.sessions
	take := func(tenant string, plain bool) *session {
		x, err := s.take(tenant, plain)
		require.NoError(t, err)
		return x
	}
	a, b := take("a", false), take("a", false)
	require.NotSame(t, a, b, "statements at once")
	require.NoError(t, errors.Join(s.end(a, true), s.end(b, true)))
	require.Same(t, b, take("a", false))
	b.lookup = true
	require.NoError(t, s.end(b, true))
	require.Same(t, a, take("a", true), "plain")
	other := take("b", false)
	require.NotContains(t, []*session{a, b}, other)
	many := []*session{take("d", false), take("d", false), take("d", false)}
	require.NoError(t, errors.Join(s.end(a, true), s.end(many[0], true), s.end(many[1], true), s.end(many[2], true)))
	require.ErrorIs(t, b.Open(), duck.ErrClosed, "it was not used for longest")
	require.Len(t, s.idle, keptSessions)
	require.NoError(t, s.end(other, false))
	require.ErrorIs(t, other.Open(), duck.ErrClosed, "it may not be used again")
	used := take("c", false)
	require.NoError(t, s.Close())
	require.ErrorIs(t, a.Open(), duck.ErrClosed)
	require.NoError(t, used.Open(), "a session in use outlives the runner")
	require.NoError(t, s.end(used, true))
	require.ErrorIs(t, used.Open(), duck.ErrClosed)
	require.Empty(t, s.idle)
}

// TestSessionsAtOnce: no two statements at once have one session.
func TestSessionsAtOnce(t *testing.T) {
	s := &newRunner(t).sessions
	var mu sync.Mutex
	busy := map[*session]bool{}
	mark := func(x *session, now bool) {
		mu.Lock()
		defer mu.Unlock()
		if busy[x] == now {
			t.Error("a session is given twice")
		}
		busy[x] = now
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for round := range 10 {
				x, err := s.take("a", false)
				if err != nil {
					t.Error(err)
					return
				}
				mark(x, true)
				mark(x, false)
				if err := s.end(x, round%3 > 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, len(s.idle), keptSessions)
}

// TestSessionsAreLeftClean: a statement that succeeds, is refused, cannot be planned or fails
// because of its data leaves its session to the next one; one that was ended by a limit does not.
func TestSessionsAreLeftClean(t *testing.T) {
	r := newRunner(t)
	for text, kept := range map[string]bool{
		"SELECT prom_sum(v ORDER BY 1) FROM (SELECT [1.0] AS v)": true,
		"SELECT 'x'::INTEGER": true,
		"SELECT count(DISTINCT repeat('x', 1000) || i) FROM range(1000000) t(i)": false,
	} {
		x := &execution{Runner: r, ctx: t.Context(), metrics: map[string]*metricTable{}}
		x.stmt.Text = text
		require.NoError(t, x.enter(false))
		before := x.db
		rows, err := x.db.Stream(t.Context(), text)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			rows.Close()
		}
		require.NoError(t, x.close(x.because(err)))
		next, taken := r.sessions.take(tenant.Default, false)
		require.NoError(t, taken)
		require.Equal(t, kept, next == before, "%s: %v", text, err)
		require.NoError(t, r.sessions.end(next, false))
	}
}
