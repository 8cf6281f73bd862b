package listen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/listen"
)

// patience is how long a test waits for a state that will come.
const patience = 2 * time.Minute

// sink keeps the lines that the listener's protocol decodes. While it is down, appends fail; while
// it is blocked, they do not return.
type sink struct {
	mu      sync.Mutex
	lines   []string
	down    bool
	failed  int
	blocked chan struct{} // nil: not
	refused error
}

func (s *sink) Append(ctx context.Context, tenant string, _ int64, source func(*remotewrite.Generation, remotewrite.Rules, remotewrite.Room) (*remotewrite.Batch, error)) (refused, err error) {
	s.mu.Lock()
	blocked := s.blocked
	s.mu.Unlock()
	if blocked != nil {
		select {
		case <-blocked:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		s.failed++
		return nil, errors.New("the store is down")
	}
	if tenant != "team" {
		return nil, errors.New("another tenant")
	}
	_, err = source(nil, remotewrite.Rules{}, remotewrite.Room{})
	if err != nil {
		return err, nil
	}
	return s.refused, nil
}

func (s *sink) decode(lines []byte, _ time.Time, _ *remotewrite.Generation, _ remotewrite.Rules, _ remotewrite.Room) (*remotewrite.Batch, error) {
	if bytes.Contains(lines, []byte("bad")) {
		return nil, errors.New("a bad batch")
	}
	if bytes.Contains(lines, []byte("defect")) {
		panic("a defect")
	}
	for line := range bytes.Lines(lines) {
		s.lines = append(s.lines, string(line))
	}
	return nil, nil
}

func (s *sink) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

func (s *sink) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// open opens a listener and returns what counts it.
func open(t *testing.T, s *sink, change func(*listen.Settings)) (*listen.Listener, func(name string, values ...string) float64) {
	t.Helper()
	set := listen.Settings{Address: "127.0.0.1:0", Tenant: "team", QueueBytes: 1 << 20, MaxConnections: 10, Interval: time.Millisecond}
	change(&set)
	return openFor(t, s, set, listen.Protocol{Name: "test", Decode: s.decode})
}

// openFor is open for a protocol.
func openFor(t *testing.T, s *sink, set listen.Settings, p listen.Protocol) (*listen.Listener, func(name string, values ...string) float64) {
	t.Helper()
	return openWithin(t, s, set, p, nil)
}

// openWithin is openFor within the memory of a process.
func openWithin(t *testing.T, s *sink, set listen.Settings, p listen.Protocol, budget *memory.Budget) (*listen.Listener, func(name string, values ...string) float64) {
	t.Helper()
	reg := prometheus.NewRegistry()
	l, err := listen.Open(t.Context(), set, p, s, budget, reg, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, l.Close(ctx))
	})
	return l, func(name string, values ...string) (sum float64) {
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				var all []string
				for _, p := range m.GetLabel() {
					all = append(all, p.GetValue())
				}
				if f.GetName() == "promlake_listener_"+name && !slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(all, v) }) {
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
		return sum
	}
}

func dial(t *testing.T, network string, l *listen.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial(network, l.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(t, err)
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	require.Eventually(t, is, patience, time.Millisecond)
}

// TestMemoryOfTheProcess: connections and lines that wait are charged to the process. At its limit
// connections are closed at once, datagrams are dropped, and TCP senders wait.
func TestMemoryOfTheProcess(t *testing.T) {
	const limit = 40 << 10 // two connections
	budget := memory.New(limit, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, nil)
	s := &sink{blocked: make(chan struct{})}
	l, count := openWithin(t, s, listen.Settings{Address: "127.0.0.1:0", Tenant: "team", QueueBytes: 1 << 20, MaxConnections: 10, Interval: time.Millisecond},
		listen.Protocol{Name: "test", Decode: s.decode}, budget)
	one, two := dial(t, "tcp", l), dial(t, "tcp", l)
	eventually(t, func() bool { return count("connections") == 2 })
	_, err := dial(t, "tcp", l).Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	line := strings.Repeat("x", 6<<10) + "\n"
	write(t, one, line)
	eventually(t, func() bool { return count("queue_bytes") > 0 })
	u := dial(t, "udp", l)
	eventually(t, func() bool { // a datagram may be lost
		write(t, u, line)
		return count("dropped_lines_total", "memory_limit") > 0
	})
	write(t, two, line) // waits
	eventually(t, func() bool { return count("lines_total", "tcp") == 2 })
	close(s.blocked)
	eventually(t, func() bool { return len(s.got()) == 2 })
	require.NoError(t, l.Close(t.Context()))
	require.NoError(t, budget.TryAcquire(limit), "all was given back")
}

// TestLines: lines arrive whole, over TCP in order, however they are cut.
func TestLines(t *testing.T) {
	s := &sink{}
	l, count := open(t, s, func(*listen.Settings) {})
	c := dial(t, "tcp", l)
	var want []string
	for i := range 500 {
		line := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", i*7%300))
		want = append(want, line)
		write(t, c, line[:i%len(line)])
		write(t, c, line[i%len(line):])
	}
	eventually(t, func() bool { return len(s.got()) == 500 })
	require.Equal(t, want, s.got())
	u := dial(t, "udp", l)
	eventually(t, func() bool { // a datagram may be lost
		write(t, u, "one\ntwo")
		got := s.got()
		return slices.Contains(got, "one\n") && slices.Contains(got, "two\n")
	})
	require.InDelta(t, 500, count("lines_total", "tcp"), 0)
	require.InDelta(t, 1, count("connections"), 0)
	require.Zero(t, count("dropped_lines_total"))
}

// TestLongAndIncompleteLines are counted, and cost no other line.
func TestLongAndIncompleteLines(t *testing.T) {
	s := &sink{}
	l, count := open(t, s, func(*listen.Settings) {})
	c := dial(t, "tcp", l)
	write(t, c, "before\n"+strings.Repeat("y", 100_000)+"\nafter\nhalf")
	eventually(t, func() bool { return len(s.got()) == 2 })
	require.Equal(t, []string{"before\n", "after\n"}, s.got())
	require.NoError(t, c.Close())
	eventually(t, func() bool { return count("dropped_lines_total", "incomplete") == 1 })
	require.InDelta(t, 1, count("dropped_lines_total", "line_too_long"), 0)
	eventually(t, func() bool { return count("connections") == 0 })
}

// TestStoreIsDown: lines are appended again until the store has them, each once.
func TestStoreIsDown(t *testing.T) {
	s := &sink{down: true}
	l, count := open(t, s, func(*listen.Settings) {})
	write(t, dial(t, "tcp", l), "a\nb\n")
	eventually(t, func() bool { return count("failed_appends_total") >= 2 })
	require.Positive(t, count("queue_bytes"))
	s.set(func() { s.down = false })
	eventually(t, func() bool { return count("queue_bytes") == 0 })
	require.Equal(t, []string{"a\n", "b\n"}, s.got())
	require.Zero(t, count("dropped_lines_total"))
}

// TestFullQueue: TCP waits, UDP is dropped and counted.
func TestFullQueue(t *testing.T) {
	s := &sink{blocked: make(chan struct{})}
	l, count := open(t, s, func(set *listen.Settings) { set.QueueBytes = 1000 })
	c := dial(t, "tcp", l)
	const lines = 5000
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write([]byte(strings.Repeat("0123456789abcdef 1 2\n", lines)))
		sent <- err
	}()
	eventually(t, func() bool { return count("queue_bytes") > 900 })
	u := dial(t, "udp", l)
	eventually(t, func() bool {
		write(t, u, strings.Repeat("u", 1000)+"\n")
		return count("dropped_lines_total", "queue_full") > 0
	})
	s.set(func() { close(s.blocked); s.blocked = nil })
	require.NoError(t, <-sent)
	eventually(t, func() bool {
		n := 0
		for _, line := range s.got() {
			if line[0] == '0' {
				n++
			}
		}
		return n == lines
	})
	require.Equal(t, count("dropped_lines_total"), count("dropped_lines_total", "queue_full"))
}

// TestRefusedBatches are not repeated. Those of which nothing was stored count as dropped.
func TestRefusedBatches(t *testing.T) {
	s := &sink{refused: errors.New("a line breaks a rule")}
	l, count := open(t, s, func(*listen.Settings) {})
	c := dial(t, "tcp", l)
	write(t, c, "a\n")
	eventually(t, func() bool { return count("refused_batches_total") == 1 })
	require.Zero(t, count("dropped_lines_total"))
	write(t, c, "bad\n")
	eventually(t, func() bool { return count("dropped_lines_total", "batch_refused") == 1 })
	write(t, c, "defect\n")
	eventually(t, func() bool { return count("dropped_lines_total", "batch_refused") == 2 })
	require.Equal(t, []string{"a\n"}, s.got())
}

// TestTooManyConnections are closed at once; when one ends, there is room again.
func TestTooManyConnections(t *testing.T) {
	s := &sink{}
	l, count := open(t, s, func(set *listen.Settings) { set.MaxConnections = 1 })
	first := dial(t, "tcp", l)
	write(t, first, "a\n")
	eventually(t, func() bool { return len(s.got()) == 1 })
	second := dial(t, "tcp", l)
	require.NoError(t, second.SetReadDeadline(time.Now().Add(patience)))
	_, err := second.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, first.Close())
	eventually(t, func() bool { return count("connections") == 0 })
	eventually(t, func() bool {
		c, err := net.Dial("tcp", l.Addr())
		if err != nil {
			return false
		}
		defer c.Close()
		_, _ = c.Write([]byte("b\n"))
		return slices.Contains(s.got(), "b\n")
	})
}

// TestClose: what was received is stored; what cannot be stored in time is counted.
func TestClose(t *testing.T) {
	s := &sink{}
	l, count := open(t, s, func(set *listen.Settings) { set.Interval = time.Hour })
	write(t, dial(t, "tcp", l), "waiting\n")
	eventually(t, func() bool { return count("lines_total") == 1 })
	require.NoError(t, l.Close(t.Context()))
	require.Equal(t, []string{"waiting\n"}, s.got())
	require.NoError(t, l.Close(t.Context()))
	_, err := net.Dial("tcp", l.Addr())
	require.Error(t, err)

	s = &sink{down: true}
	l, count = open(t, s, func(*listen.Settings) {})
	write(t, dial(t, "tcp", l), "lost\nlost too\n")
	eventually(t, func() bool { return count("failed_appends_total") > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, l.Close(ctx))
	require.InDelta(t, 2, count("dropped_lines_total", "shutdown"), 0)
}

func TestAddressInUse(t *testing.T) {
	s := &sink{}
	l, _ := open(t, s, func(*listen.Settings) {})
	for _, address := range []string{l.Addr(), "nonsense"} {
		_, err := listen.Open(t.Context(), listen.Settings{Address: address}, listen.Protocol{Name: "test"}, s, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
		require.ErrorContains(t, err, "listen for test: ")
	}
}
