package message

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

func encoded(e *Message, plain []byte) string {
	e.Bytes = len(plain)
	return e.encode(encoder().EncodeAll(plain, nil))
}

func someEnvelope() *Message {
	return &Message{Tenant: "team-a", Received: time.UnixMilli(remotewritetest.SomeTime), Holds: remotewrite.Tally{Floats: 1, Hists: 2, Exemplars: 3}}
}

func TestEnvelope(t *testing.T) {
	for _, n := range []int{0, 1, 100, 255, 256, 70_000, 3 << 20} {
		plain := []byte(strings.Repeat("promlake ", n/9+1))[:n]
		text := encoded(someEnvelope(), plain)
		require.Equal(t, fmt.Sprintf("promlake-write/1 tenant=team-a received=1700000000000 floats=1 histograms=2 exemplars=3 bytes=%d", n), strings.SplitN(text, "\n", 2)[0])
		e, err := Parse(text)
		require.NoError(t, err)
		var u unpacker
		require.NoError(t, u.decompress(e))
		require.Equal(t, plain, append([]byte{}, u.plain...))
		want := someEnvelope()
		want.Bytes, want.data = n, e.data
		require.Equal(t, want, e)
	}
}

// TestLongestHead keeps the room that is set aside for the first line.
func TestLongestHead(t *testing.T) {
	const most = 1<<63 - 1
	e := &Message{Tenant: remotewritetest.Long(150), Received: time.UnixMilli(-1 << 62), Holds: remotewrite.Tally{Floats: most, Hists: most, Exemplars: most}, Bytes: most}
	require.LessOrEqual(t, len(e.head()), maxHead)
}

func TestUnreadableMessages(t *testing.T) {
	good := encoded(someEnvelope(), []byte("hello"))
	head, data, _ := strings.Cut(good, "\n")
	other := func(old, new string) string { return strings.Replace(head, old, new, 1) + "\n" + data }
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	frame := func(b string) string { return base64.StdEncoding.EncodeToString(z.EncodeAll([]byte(b), nil)) }
	for _, tc := range []struct{ name, body, want string }{
		{"empty", "", "it is not promlake-write/1"},
		{"JSON", `{"Records":[]}`, "it is not promlake-write/1"},
		{"later version", other("promlake-write/1", "promlake-write/3"), "it is not promlake-write/1 or promlake-write/2"},
		{"one line", head, "it is not promlake-write/1"},
		{"a field too few", other(" exemplars=3", ""), "its first line has 5 fields instead of 6"},
		{"a field too many", other("\n", " x=1\n") + "", "base64"},
		{"another field", other("floats", "doubles"), `field "doubles=1" instead of floats`},
		{"tenant", other("team-a", "a/b"), `tenant "a/b" in its first line`},
		{"no tenant", other("team-a", ""), `tenant "" in its first line`},
		{"too large", other("bytes=5", "bytes=8388609"), "bytes=8388609 in its first line, the limit is 8388608"},
		{"number", other("floats=1", "floats=one"), `floats="one"`},
		{"number with a sign", other("floats=1", "floats=+1"), `floats="+1"`},
		{"negative number", other("bytes=5", "bytes=-5"), `bytes="-5"`},
		{"huge number", other("floats=1", "floats=99999999999999999999"), `floats="99999999999999999999"`},
		{"no data", head + "\n", "zstd"},
		{"base64", head + "\n" + data[:len(data)-1] + "?", "base64"},
		{"base64 with line ends", head + "\n" + data[:8] + "\n" + data[8:], "it is not promlake-write/1"},
		{"base64 that is cut", head + "\n" + data[:len(data)-4], "zstd"},
		{"no zstd", head + "\naGVsbG8=", "zstd"},
		{"another length", head + "\n" + frame("hello!"), "zstd"},
		{"a shorter one", head + "\n" + frame("hell"), "zstd: 4 bytes instead of 5"},
		{"two frames", head + "\n" + base64.StdEncoding.EncodeToString(z.EncodeAll([]byte("hello"), z.EncodeAll([]byte("hello"), nil))), "zstd"},
		{"bomb", head + "\n" + frame(strings.Repeat("x", 10<<20)), "zstd"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "a field too many" {
				tc.body, tc.want = head+" x=1\n"+data, "its first line has 7 fields instead of 6"
			}
			e, err := Parse(tc.body)
			if err == nil {
				var u unpacker
				require.Less(t, allocated(func() { err = u.decompress(e) }), uint64(4<<20))
			}
			require.ErrorIs(t, err, ErrUnreadable)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// FuzzMessage decodes arbitrary messages, whose frame is either the fuzzer's or packed by the test:
// each is refused, or is the only encoding of its content.
func FuzzMessage(f *testing.F) {
	add := func(e *Message, plain []byte) {
		text := encoded(e, plain)
		f.Add(strings.SplitN(text, "\n", 2)[0], plain, true)
		f.Add(strings.SplitN(text, "\n", 2)[0], encoder().EncodeAll(plain, nil), false)
	}
	for _, version := range protocols {
		columns, holds := columnsOf(f, version, remotewritetest.FuzzItems())
		e := &Message{Tenant: "a", Received: time.UnixMilli(remotewritetest.SomeTime), Holds: holds}
		add(e, columns)
		e.Sent = e.Received.Add(time.Millisecond)
		add(e, columns)
	}
	add(someEnvelope(), []byte("hello"))
	f.Add("promlake-write/1 tenant=a received=0 floats=0 histograms=0 exemplars=0 bytes=1073741824", []byte{0x28, 0xb5, 0x2f, 0xfd}, false)
	f.Fuzz(func(t *testing.T, head string, frame []byte, pack bool) {
		if pack {
			frame = encoder().EncodeAll(frame, nil)
		}
		m, err := Describe(head + "\n" + base64.StdEncoding.EncodeToString(frame))
		if err != nil {
			return
		}
		require.Equal(t, head+"\n", m.head())
	})
}

// allocated returns how many bytes were set aside while f ran.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
