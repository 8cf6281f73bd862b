package memqueue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/memqueue"
)

// scene is a queue with a clock, faults and dead letters.
type scene struct {
	*memqueue.Queue
	faults memqueue.Script
	dead   *memqueue.Queue
	now    time.Time
}

func newScene() *scene {
	s := &scene{now: time.Unix(1000, 0)}
	clock := func() time.Time { return s.now }
	s.dead = memqueue.New(memqueue.Settings{Now: clock})
	s.Queue = memqueue.New(memqueue.Settings{Now: clock, Faults: s.faults.Next, MaxReceives: 2, DeadLetters: s.dead})
	return s
}

func (s *scene) receive(t *testing.T) []string {
	t.Helper()
	ms, err := s.Receive(t.Context(), 10, 0, time.Minute)
	require.NoError(t, err)
	var out []string
	for _, m := range ms {
		out = append(out, m.Body)
	}
	return out
}

func TestVisibility(t *testing.T) {
	s := newScene()
	require.NoError(t, s.Send(t.Context(), queue.Message{Body: "a"}, queue.Message{Body: "b"}))
	require.Equal(t, []string{"a", "b"}, s.receive(t))
	require.Empty(t, s.receive(t), "hidden")
	s.now = s.now.Add(time.Minute)
	ms, err := s.Receive(t.Context(), 1, 0, time.Minute)
	require.NoError(t, err)
	require.Equal(t, 2, ms[0].Receives)
	require.NoError(t, s.Delete(t.Context(), ms...))
	require.Equal(t, []string{"b"}, s.receive(t))
	s.now = s.now.Add(time.Minute)
	require.Empty(t, s.receive(t))
	require.Empty(t, s.Messages())
	require.Equal(t, "b", s.dead.Messages()[0].Body)
}

func TestRelease(t *testing.T) {
	s := newScene()
	require.NoError(t, s.Send(t.Context(), queue.Message{Body: "a"}))
	ms, err := s.Receive(t.Context(), 10, 0, time.Hour)
	require.NoError(t, err)
	require.NoError(t, s.Release(t.Context(), 0, ms...))
	require.Equal(t, []string{"a"}, s.receive(t))
	require.NoError(t, s.Delete(t.Context(), ms...), "the handle of an earlier delivery")
	require.Len(t, s.Messages(), 1)
}

func TestDeduplication(t *testing.T) {
	s := newScene()
	m := queue.Message{Body: "a", Group: "g", Deduplication: "d"}
	require.NoError(t, s.Send(t.Context(), m, m))
	require.Len(t, s.Messages(), 1)
	s.now = s.now.Add(5 * time.Minute)
	require.NoError(t, s.Send(t.Context(), m))
	require.Len(t, s.Messages(), 2)
}

func TestFaults(t *testing.T) {
	down := errors.New("down")
	a, b := queue.Message{Body: "a"}, queue.Message{Body: "b"}
	for _, tc := range []struct {
		name  string
		fault memqueue.Fault
		want  int
		err   error
	}{
		{"before", memqueue.Fault{Err: down}, 0, down},
		{"after", memqueue.Fault{Err: down, After: true}, 2, down},
		{"in part", memqueue.Fault{Err: down, After: true, Only: 1}, 1, down},
		{"twice", memqueue.Fault{Twice: true}, 4, nil},
	} {
		s := newScene()
		s.faults.Add(memqueue.Send, tc.fault)
		require.ErrorIs(t, s.Send(t.Context(), a, b), tc.err, tc.name)
		require.Len(t, s.Messages(), tc.want, tc.name)
		require.Zero(t, s.faults.Left())
	}
}
