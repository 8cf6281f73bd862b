package sql

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/query/duck"
)

// TestSpare: no session is given twice, statements at once have different ones, and none is open
// after Close.
func TestSpare(t *testing.T) {
	r := New(Parts{
		Settings: Settings{MemoryBytes: 64 << 20, SpillBytes: 1 << 20, Threads: 1, Spare: true}, Work: &tempdir.WorkDir{Configured: t.TempDir()},
		Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { require.NoError(t, r.Work.Close()) })
	var mu sync.Mutex
	given := map[*session]bool{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				s, err := r.spare.take(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if given[s] {
					t.Error("a session is given twice")
				}
				given[s] = true
				mu.Unlock()
				if err := r.spare.end(s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Len(t, given, 40)
	last, err := r.spare.take(context.Background())
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.NoError(t, last.Each(context.Background(), "SELECT count(*)::VARCHAR FROM range(10)", []string{duck.Varchar}, func(_ int, columns []duck.Vector) error {
		require.Equal(t, "10", string(columns[0].Strings()[0].Bytes()))
		return nil
	}), "a session in use outlives the runner")
	require.NoError(t, r.spare.end(last))
	for s := range given {
		require.ErrorIs(t, s.Open(), duck.ErrClosed)
	}
	require.ErrorIs(t, last.Open(), duck.ErrClosed)
	require.Nil(t, r.spare.ready)
}

// unopened returns a session whose database opens at its first statement.
func unopened(t *testing.T) *session {
	g, err := duck.NewGuard(1<<20, 1<<20)
	require.NoError(t, err)
	return &session{DB: duck.New(duck.Settings{Connections: 1}), guard: g}
}

// TestSpareFails: a session that cannot be opened ahead is opened, or fails, with the statement; who
// waits for one waits no longer than its context.
func TestSpareFails(t *testing.T) {
	broken, opened := errors.New("no disk"), make(chan struct{})
	fail := true
	s := &spare{logger: slog.New(slog.DiscardHandler), open: func() (*session, error) {
		<-opened
		if fail {
			return nil, broken
		}
		return unopened(t), nil
	}}
	require.NoError(t, s.end(unopened(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.take(ctx)
	require.ErrorIs(t, err, context.Canceled)
	close(opened)
	_, err = s.take(t.Context())
	require.ErrorIs(t, err, broken)
	s.work.Wait()
	fail = false
	x, err := s.take(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.end(x))
	require.NoError(t, s.Close())
}
