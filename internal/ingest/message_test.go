package ingest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/key"
)

func sealed(e *envelope, plain []byte) string {
	e.bytes = len(plain)
	return e.seal(zstdEncoder().EncodeAll(plain, nil))
}

func someEnvelope() *envelope {
	return &envelope{tenant: "team-a", received: time.UnixMilli(someTime), holds: tally{1, 2, 3}}
}

func TestEnvelope(t *testing.T) {
	for _, n := range []int{0, 1, 100, 255, 256, 70_000, 3 << 20} {
		plain := []byte(strings.Repeat("promlake ", n/9+1))[:n]
		text := sealed(someEnvelope(), plain)
		require.Equal(t, fmt.Sprintf("promlake-write/1 tenant=team-a received=1700000000000 floats=1 histograms=2 exemplars=3 bytes=%d", n), strings.SplitN(text, "\n", 2)[0])
		e, err := parseEnvelope(text)
		require.NoError(t, err)
		var into buffer
		require.NoError(t, e.unpack(&into))
		require.Equal(t, plain, append([]byte{}, into.b...))
		want := someEnvelope()
		want.bytes, want.data = n, e.data
		require.Equal(t, want, e)
	}
}

// TestEnvelopeIsReadForEver pins the formats: messages wait on queues while programs change.
func TestEnvelopeIsReadForEver(t *testing.T) {
	const data = "\nKLUv/QQAoQEAAghfX25hbWVfXwNqb2IBAgABAQFtAQR0ZXN0AQAAAAEAAYCgq/75YgAAAAAAAPA/AAAAALWVJ2o="
	const old = "promlake-write/1 tenant=anonymous received=1700000000000 floats=1 histograms=0 exemplars=0 bytes=52" + data
	const redriven = "promlake-write/2 tenant=anonymous received=1700000000000 sent=1700000000004 floats=1 histograms=0 exemplars=0 bytes=52" + data
	for body, sent := range map[string]int64{old: 1_700_000_300_000, redriven: 1_700_000_000_004} {
		l := calmIn(t, Buffered)
		failed, err := l.stage.Consume(t.Context(), []Delivery{{"m", body, time.UnixMilli(1_700_000_300_000)}})
		require.NoError(t, err)
		require.Empty(t, failed, "%s", &l.log)
		require.Equal(t, want(t, protocolV1, []item{gauge("m", at(someTime, 1))}), l.read(anonymous))
		seg := l.keys(anonymous)[0]
		require.True(t, seg.Queued)
		require.Equal(t, uint64(sent), seg.ID.Time(), "the segment tells when the queue got it first")
	}
	got, err := Redriven(old, time.UnixMilli(1_700_000_000_004))
	require.NoError(t, err)
	require.Equal(t, redriven, got)
	again, err := Redriven(got, time.UnixMilli(1_800_000_000_000))
	require.NoError(t, err)
	require.Equal(t, redriven, again, "it was sent once, however often it is moved")
	_, err = Redriven("nonsense", time.Now())
	require.ErrorIs(t, err, errUnreadable)
	d, err := Describe(redriven)
	require.NoError(t, err)
	require.Equal(t, 1, d.Floats)
	for _, wrong := range []string{"sent=", "sent=-4", "sent=04", "sent=0", "floats=1"} {
		_, err := parseEnvelope(strings.Replace(redriven, "sent=1700000000004", wrong, 1))
		require.ErrorIs(t, err, errUnreadable, wrong)
	}
	_, err = parseEnvelope(strings.Replace(old, "floats", "sent=5 floats", 1))
	require.ErrorIs(t, err, errUnreadable, "version 1 has no such field")
}

// TestPeriods: messages that were sent in different periods of the queue are never in one segment,
// so that a deletion between them can apply to one and not to the other.
func TestPeriods(t *testing.T) {
	l := held(t)
	sent := []int64{0, 1, key.QueueMillis - 1, key.QueueMillis, 2*key.QueueMillis + 5, 2*key.QueueMillis + 4}
	from := time.UnixMilli(someTime - someTime%key.QueueMillis)
	for i := range sent {
		l.ok(protocolV1, []item{gauge("m", at(someTime+int64(i), float64(i)))})
	}
	ds := deliveries(l.queue.Messages())
	for i := range ds {
		ds[i].Sent = from.Add(time.Duration(sent[i]) * time.Millisecond)
	}
	slices.Reverse(ds)
	failed, err := l.stage.Consume(t.Context(), ds)
	require.NoError(t, err)
	require.Empty(t, failed)
	var newest []int64
	for _, k := range l.keys(anonymous) {
		newest = append(newest, int64(k.ID.Time())-from.UnixMilli())
	}
	slices.Sort(newest)
	require.Equal(t, []int64{key.QueueMillis - 1, key.QueueMillis, 2*key.QueueMillis + 5}, newest)
	require.Len(t, l.read(anonymous)[lsetText(gauge("m").lset)].Floats, len(sent))
}

// TestMessagesOfUnknownAge are refused: nobody could tell which deletions they are older than.
func TestMessagesOfUnknownAge(t *testing.T) {
	l := held(t)
	l.ok(protocolV1, []item{gauge("m", at(someTime, 1))})
	for _, sent := range []time.Time{{}, l.now().Add(-maxQueueAge - time.Millisecond)} {
		ds := deliveries(l.queue.Messages())
		ds[0].Sent = sent
		failed, err := l.stage.Consume(t.Context(), ds)
		require.NoError(t, err)
		require.Len(t, failed, 1)
		require.Empty(t, l.keys(anonymous))
	}
}

// TestLongestHead keeps the room that is set aside for the first line.
func TestLongestHead(t *testing.T) {
	const most = 1<<63 - 1
	e := &envelope{tenant: long(150), received: time.UnixMilli(-1 << 62), holds: tally{most, most, most}, bytes: most}
	require.LessOrEqual(t, len(e.head()), maxHead)
}

func TestUnreadableMessages(t *testing.T) {
	good := sealed(someEnvelope(), []byte("hello"))
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
			e, err := parseEnvelope(tc.body)
			if err == nil {
				var into buffer
				require.Less(t, allocated(func() { err = e.unpack(&into) }), uint64(4<<20))
			}
			require.ErrorIs(t, err, errUnreadable)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// FuzzMessage reads any message, of which the frame is given or packed: it is refused, or it is the one text for what it says and can be stored.
func FuzzMessage(f *testing.F) {
	add := func(e *envelope, plain []byte) {
		text := sealed(e, plain)
		f.Add(strings.SplitN(text, "\n", 2)[0], plain, true)
		f.Add(strings.SplitN(text, "\n", 2)[0], zstdEncoder().EncodeAll(plain, nil), false)
	}
	for _, version := range protocols {
		columns, holds := columnsOf(f, version, fuzzItems())
		add(&envelope{tenant: "a", received: time.UnixMilli(someTime), holds: holds}, columns)
	}
	add(someEnvelope(), []byte("hello"))
	f.Add("promlake-write/1 tenant=a received=0 floats=0 histograms=0 exemplars=0 bytes=1073741824", []byte{0x28, 0xb5, 0x2f, 0xfd}, false)
	f.Fuzz(func(t *testing.T, head string, frame []byte, pack bool) {
		if pack {
			frame = zstdEncoder().EncodeAll(frame, nil)
		}
		body := head + "\n" + base64.StdEncoding.EncodeToString(frame)
		d, err := Describe(body)
		if err != nil {
			return
		}
		e, err := parseEnvelope(body)
		require.NoError(t, err)
		require.Equal(t, head+"\n", e.head())
		require.Equal(t, e.tenant, d.Tenant)
		l := calmIn(t, Buffered)
		_, err = l.stage.Consume(t.Context(), []Delivery{{"m", body, time.UnixMilli(someTime)}})
		require.NoError(t, err)
		l.read(e.tenant)
	})
}
