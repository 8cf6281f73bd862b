package ingest

import (
	"encoding/base64"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/message"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// golden returns the message of a version that package message pins.
func golden(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("message/testdata/" + name + ".txt")
	require.NoError(t, err)
	return string(b)
}

// TestEnvelopeIsReadForEver pins the formats: messages wait on queues while programs change.
func TestEnvelopeIsReadForEver(t *testing.T) {
	old, redriven := golden(t, "promlake-write-1"), golden(t, "promlake-write-2")
	for body, sent := range map[string]int64{old: 1_700_000_300_000, redriven: 1_700_000_000_004} {
		l := calmIn(t, Buffered)
		failed, err := l.stage.Consume(t.Context(), []queue.Received{{ID: "m", Body: body, Sent: time.UnixMilli(1_700_000_300_000)}})
		require.NoError(t, err)
		require.Empty(t, failed, "%s", &l.log)
		require.Equal(t, want(t, protocolV1, []item{gauge("m", at(someTime, 1))}), l.read(anonymous))
		seg := l.keys(anonymous)[0]
		require.True(t, seg.Queued)
		require.Equal(t, uint64(sent), seg.ID.Time(), "the segment tells when the queue got it first")
	}
	got, err := message.Redriven(old, time.UnixMilli(1_700_000_000_004))
	require.NoError(t, err)
	require.Equal(t, redriven, got)
	again, err := message.Redriven(got, time.UnixMilli(1_800_000_000_000))
	require.NoError(t, err)
	require.Equal(t, redriven, again, "it was sent once, however often it is moved")
	_, err = message.Redriven("nonsense", time.Now())
	require.ErrorIs(t, err, message.ErrUnreadable)
	d, err := message.Describe(redriven)
	require.NoError(t, err)
	require.Equal(t, 1, d.Holds.Floats)
	for _, wrong := range []string{"sent=", "sent=-4", "sent=04", "sent=0", "floats=1"} {
		_, err := message.Parse(strings.Replace(redriven, "sent=1700000000004", wrong, 1))
		require.ErrorIs(t, err, message.ErrUnreadable, wrong)
	}
	_, err = message.Parse(strings.Replace(old, "floats", "sent=5 floats", 1))
	require.ErrorIs(t, err, message.ErrUnreadable, "version 1 has no such field")
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
	ds := l.queue.Messages()
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
	require.Len(t, l.read(anonymous)[lsetText(gauge("m").Lset)].Floats, len(sent))
}

// TestMessagesOfUnknownAge: messages of unknown age are refused, because it is unknown which
// deletions came after them.
func TestMessagesOfUnknownAge(t *testing.T) {
	l := held(t)
	l.ok(protocolV1, []item{gauge("m", at(someTime, 1))})
	for _, sent := range []time.Time{{}, l.now().Add(-maxQueueAge - time.Millisecond)} {
		ds := l.queue.Messages()
		ds[0].Sent = sent
		failed, err := l.stage.Consume(t.Context(), ds)
		require.NoError(t, err)
		require.Len(t, failed, 1)
		require.Empty(t, l.keys(anonymous))
	}
}

// decoded decodes items as a request of someTime.
func decoded(t testing.TB, version protocol, items []item) *remotewrite.Batch {
	msg := encode(t, version, items)
	b, err := remotewrite.Decode(version, msg, remotewrite.NewGeneration(1), remotewritetest.Rules(), remotewrite.NewRoom(len(msg), 1<<28, 1<<28, nil))
	require.NoError(t, err)
	return b
}

// FuzzMessage consumes arbitrary messages, whose frame is either the fuzzer's or packed by the
// test: each message is refused, or it can be stored.
func FuzzMessage(f *testing.F) {
	z, err := zstd.NewWriter(nil)
	require.NoError(f, err)
	unpack, err := zstd.NewReader(nil)
	require.NoError(f, err)
	for _, version := range protocols {
		ms, err := message.Split(decoded(f, version, fuzzItems()), "a", time.UnixMilli(someTime), queue.MaxMessageBytes, 1)
		require.NoError(f, err)
		head, data, _ := strings.Cut(ms[0].Body, "\n")
		frame, err := base64.StdEncoding.DecodeString(data)
		require.NoError(f, err)
		columns, err := unpack.DecodeAll(frame, nil)
		require.NoError(f, err)
		f.Add(head, columns, true)
		f.Add(head, frame, false)
	}
	f.Add("promlake-write/1 tenant=team-a received=1700000000000 floats=1 histograms=2 exemplars=3 bytes=5", []byte("hello"), true)
	f.Add("promlake-write/1 tenant=a received=0 floats=0 histograms=0 exemplars=0 bytes=1073741824", []byte{0x28, 0xb5, 0x2f, 0xfd}, false)
	f.Fuzz(func(t *testing.T, head string, frame []byte, pack bool) {
		if pack {
			frame = z.EncodeAll(frame, nil)
		}
		body := head + "\n" + base64.StdEncoding.EncodeToString(frame)
		m, err := message.Describe(body)
		if err != nil {
			return
		}
		l := calmIn(t, Buffered)
		_, err = l.stage.Consume(t.Context(), []queue.Received{{ID: "m", Body: body, Sent: time.UnixMilli(someTime)}})
		require.NoError(t, err)
		l.read(m.Tenant)
	})
}
