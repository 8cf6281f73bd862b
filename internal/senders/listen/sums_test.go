package listen_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/listen"
)

// tally counts lines, and leaves out those with "bad".
type tally struct {
	sink *sink

	mu     sync.Mutex
	lines  int
	broken int // flushes that panic
}

func (a *tally) Add(lines []byte, drop, ignore func(string, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for line := range bytes.Lines(lines) {
		if bytes.Contains(line, []byte("defect")) {
			panic("a defect")
		}
		if bytes.Contains(line, []byte("bad")) {
			drop("invalid_line", errors.New("a bad line"))
			continue
		}
		if bytes.Contains(line, []byte("odd")) {
			ignore("invalid_tag", errors.New("an odd tag"))
		}
		a.lines++
	}
}

func (a *tally) Flush() (samples int, size int64, source listen.Source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken > 0 {
		a.broken--
		panic("a defect")
	}
	text := strings.Repeat("x", a.lines)
	return a.lines, 1, func(*remotewrite.Generation, remotewrite.Rules, remotewrite.Room) (*remotewrite.Batch, error) {
		a.sink.lines = append(a.sink.lines, text)
		return nil, nil
	}
}

func (a *tally) has(lines int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lines == lines
}

// TestSums: what lines add up to is appended at intervals, whole again after an outage of the
// store, and once more at the end.
func TestSums(t *testing.T) {
	for _, interval := range []time.Duration{time.Millisecond, time.Hour} {
		s := &sink{down: interval < time.Hour}
		sums := &tally{sink: s}
		l, count := openFor(t, s, listen.Settings{Address: "127.0.0.1:0", Tenant: "team", MaxConnections: 10, Interval: interval},
			listen.Protocol{Name: "test", Aggregate: sums})
		write(t, dial(t, "tcp", l), "a\nbad\nodd\n")
		eventually(t, func() bool { return sums.has(2) })
		if s.down {
			eventually(t, func() bool { return count("failed_appends_total") > 1 })
			s.set(func() { s.down = false })
		}
		u := dial(t, "udp", l)
		eventually(t, func() bool { // a datagram may be lost
			write(t, u, "c")
			return !sums.has(2)
		})
		require.NoError(t, u.Close())
		require.NoError(t, l.Close(t.Context()))
		got := s.got()
		require.NotEmpty(t, got)
		sums.mu.Lock()
		require.InDelta(t, 1, count("ignored_parts_total", "invalid_tag"), 0)
		require.Len(t, got[len(got)-1], sums.lines, "the last one has all")
		sums.mu.Unlock()
		require.True(t, slices.IsSorted(got))
		require.InDelta(t, 1, count("dropped_lines_total", "invalid_line"), 0)
		require.InDelta(t, 1, count("dropped_lines_total"), 0)
	}
}

// message is a text after its length.
func message(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

// TestMessages: messages become lines, however they are cut. A bad one costs no other; one that is
// too long ends the connection.
func TestMessages(t *testing.T) {
	s := &sink{}
	l, count := openFor(t, s, listen.Settings{Address: "127.0.0.1:0", Tenant: "team", QueueBytes: 1 << 20, MaxConnections: 10, Interval: time.Millisecond}, listen.Protocol{
		Name: "test", Decode: s.decode, MaxMessage: 100_000,
		Unpack: func(m []byte, add func([]byte)) (bad int, why, err error) {
			switch {
			case string(m) == "broken":
				return 0, nil, errors.New("broken")
			case string(m) == "points":
				return 2, errors.New("two points"), nil
			}
			add(append(m, '\n'))
			return 0, nil, nil
		},
	})
	c := dial(t, "tcp", l)
	long := strings.Repeat("long", 20_000)
	all := message("one") + message("broken") + message(long) + message("points") + message("") + message("two")
	for i := 0; i < len(all); i += 10_007 {
		write(t, c, all[i:min(len(all), i+10_007)])
	}
	eventually(t, func() bool { return len(s.got()) == 4 })
	require.Equal(t, []string{"one\n", long + "\n", "\n", "two\n"}, s.got())
	require.InDelta(t, 1, count("dropped_lines_total", "invalid_message"), 0)
	require.InDelta(t, 2, count("dropped_lines_total", "invalid_point"), 0)
	write(t, c, message(long + long)[:4])
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.InDelta(t, 1, count("dropped_lines_total", "line_too_long"), 0)
	for _, part := range []string{message("half")[:6], "\x00"} {
		c = dial(t, "tcp", l)
		write(t, c, part)
		require.NoError(t, c.Close())
	}
	eventually(t, func() bool { return count("dropped_lines_total", "incomplete") == 2 })
	eventually(t, func() bool { return count("connections") == 0 })
}

// TestAnnouncedMessagesTakeNoMemory: messages that were announced and do not arrive keep no other
// one waiting.
func TestAnnouncedMessagesTakeNoMemory(t *testing.T) {
	const size = 8 << 20
	s := &sink{}
	l, count := openFor(t, s, listen.Settings{Address: "127.0.0.1:0", Tenant: "team", QueueBytes: 1 << 20, MaxConnections: 10, Interval: time.Millisecond}, listen.Protocol{
		Name: "test", Decode: s.decode, MaxMessage: size,
		Unpack: func(m []byte, add func([]byte)) (bad int, why, err error) {
			add(append(m, '\n'))
			return 0, nil, nil
		},
	})
	announced := binary.BigEndian.AppendUint32(nil, size)
	for range 8 { // more than all messages together may take
		write(t, dial(t, "tcp", l), string(announced)+"x")
	}
	eventually(t, func() bool { return count("connections") == 8 })
	long := strings.Repeat("long", 50_000)
	write(t, dial(t, "tcp", l), message(long))
	eventually(t, func() bool { return len(s.got()) == 1 })
	require.Equal(t, []string{long + "\n"}, s.got())
	require.Zero(t, count("dropped_lines_total", "incomplete"), "those that were announced still wait")
}

// TestPanicsOfSums: a panic ends the work on some lines, or one flush. Connections and later
// flushes go on.
func TestPanicsOfSums(t *testing.T) {
	s := &sink{}
	sums := &tally{sink: s, broken: 2}
	l, count := openFor(t, s, listen.Settings{Address: "127.0.0.1:0", Tenant: "team", MaxConnections: 10, Interval: time.Millisecond},
		listen.Protocol{Name: "test", Aggregate: sums})
	eventually(t, func() bool { return count("dropped_lines_total", "internal_error") == 2 })
	c := dial(t, "tcp", l)
	write(t, c, "defect\n")
	eventually(t, func() bool { return count("dropped_lines_total", "internal_error") == 3 })
	write(t, c, "a\n")
	eventually(t, func() bool { return len(s.got()) > 0 })
}

// TestPanicsOfMessages: a message that meets a defect is left out, and its connection goes on.
func TestPanicsOfMessages(t *testing.T) {
	s := &sink{}
	l, count := openFor(t, s, listen.Settings{Address: "127.0.0.1:0", Tenant: "team", QueueBytes: 1 << 20, MaxConnections: 10, Interval: time.Millisecond},
		listen.Protocol{Name: "test", MaxMessage: 100, Decode: s.decode, Unpack: func(message []byte, add func(lines []byte)) (int, error, error) {
			if string(message) == "defect\n" {
				panic("a defect")
			}
			add(message)
			return 0, nil, nil
		}})
	c := dial(t, "tcp", l)
	for _, text := range []string{"defect\n", "a\n"} {
		write(t, c, string(binary.BigEndian.AppendUint32(nil, uint32(len(text))))+text)
	}
	eventually(t, func() bool { return len(s.got()) == 1 })
	require.InDelta(t, 1, count("dropped_lines_total", "invalid_message"), 0)
}
