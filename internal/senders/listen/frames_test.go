package listen

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"
)

const (
	maxFrame = 40 << 10 // more than fits into a line's buffer
	piece    = 7000     // bytes that arrive at once, at most
)

// FuzzMessages holds that the messages of a stream are unpacked one after another, however it is
// cut, and that a message which is too long or not whole ends it.
func FuzzMessages(f *testing.F) {
	frame := func(n int) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(n)), bytes.Repeat([]byte{'a'}, n)...)
	}
	f.Add(append(frame(3), frame(0)...), uint16(1))
	f.Add(append(frame(maxLine+1), frame(2)...), uint16(5000))
	f.Add(append(frame(maxFrame), frame(maxFrame+1)...), uint16(6999))
	f.Add([]byte{0, 0, 0}, uint16(2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 'x'}, uint16(3))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		var got [][]byte
		l := reader(Protocol{MaxMessage: maxFrame, Unpack: func(m []byte, _ func([]byte)) (int, error, error) {
			got = append(got, bytes.Clone(m))
			return 0, nil, nil
		}})
		pass(t, stream, cut, l.messages)
		var want [][]byte
		for rest := stream; len(rest) >= 4; {
			size := int(binary.BigEndian.Uint32(rest))
			if rest = rest[4:]; size > maxFrame || size > len(rest) {
				break
			}
			want, rest = append(want, rest[:size:size]), rest[size:]
		}
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i][:len(want[i]):len(want[i])])
			require.Len(t, got[i], len(want[i]))
		}
		require.True(t, l.arriving.TryAcquire(maxArriving), "the memory is given back")
	})
}

// FuzzConnection holds that the lines of a stream come out whole and in order, however it is cut:
// all but those that are too long, and a last one without an end.
func FuzzConnection(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nc"), uint16(1))
	f.Add(append(bytes.Repeat([]byte{'x'}, maxLine+5), "\ny\n"...), uint16(4000))
	f.Add(append(bytes.Repeat([]byte{'x'}, maxLine-1), '\n'), uint16(6999))
	f.Add(append(bytes.Repeat([]byte{'x'}, maxLine), '\n'), uint16(6999))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		sums := &lines{}
		l := reader(Protocol{Aggregate: sums})
		pass(t, stream, cut, l.connection)
		var want []byte
		for line := range bytes.Lines(stream) {
			if len(line) <= maxLine && line[len(line)-1] == '\n' {
				want = append(want, line...)
			}
		}
		require.Equal(t, string(want), string(sums.text))
	})
}

// lines keeps the lines that it is given.
type lines struct{ text []byte }

func (a *lines) Add(lines []byte, _, _ func(string, error)) { a.text = append(a.text, lines...) }

func (*lines) Flush() (int, int64, Source) { return 0, 0, nil }

// reader returns a listener that reads connections and does nothing else.
func reader(p Protocol) *Listener {
	return &Listener{
		protocol: p, now: time.Now, logger: slog.New(slog.DiscardHandler), ctx: context.Background(), arriving: semaphore.NewWeighted(maxArriving),
		met: newMetrics(prometheus.NewRegistry(), "test", func() float64 { return 0 }),
	}
}

// pass lets read take a stream that arrives in pieces of different lengths.
func pass(t *testing.T, stream []byte, cut uint16, read func(net.Conn)) {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		defer func() { _ = theirs.Close() }()
		for i := 0; len(stream) > 0; i++ {
			n := min(1+(int(cut)*(i+1))%piece, len(stream))
			if _, err := theirs.Write(stream[:n]); err != nil {
				return // the connection was ended
			}
			stream = stream[n:]
		}
	}()
	read(ours)
	require.NoError(t, ours.Close())
}
