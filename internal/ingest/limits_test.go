package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// small are settings with limits that a test reaches without much data.
func small() Settings {
	s := quick()
	s.MaxRequestBytes, s.MaxDecodedBytes, s.MaxInflightBytes = 10_000, 100_000, 1<<20
	s.InflightWait = time.Millisecond
	return s
}

// request is a POST whose body comes from a reader; a length of -1 means chunked.
func request(body io.Reader, length int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/write", body)
	r.ContentLength = length
	return r
}

// literal is a snappy block of n zero bytes that does not compress.
func literal(n int) []byte {
	b := binary.AppendUvarint(nil, uint64(n))
	for n > 0 {
		m := min(n, 60)
		b = append(append(b, byte(m-1)<<2), make([]byte, m)...)
		n -= m
	}
	return b
}

func TestBodyLimits(t *testing.T) {
	good := packed(t, encodeV1([]item{gauge("m", at(someTime, 1))}))
	claim := func(n uint64) []byte {
		return append(binary.AppendUvarint(nil, n), bytes.Repeat([]byte{0xfe, 1, 0}, 3000)...)
	}
	for _, tc := range []struct {
		name   string
		body   []byte
		length int64 // other than that of the body; 0 = that
		code   int
		want   string
	}{
		{"good", good, 0, http.StatusNoContent, ""},
		{"good and chunked", good, -1, http.StatusNoContent, ""},
		{"nothing compressed", []byte{0}, 0, http.StatusNoContent, ""},
		{"nothing compressed and chunked", []byte{0}, -1, http.StatusNoContent, ""},
		{"no body", nil, 0, http.StatusBadRequest, "snappy"},
		{"no body and chunked", nil, -1, http.StatusBadRequest, "snappy"},
		{"largest", literal(9800), 0, http.StatusBadRequest, "malformed"},
		{"too large as sent", make([]byte, 10_001), 0, http.StatusRequestEntityTooLarge, "request body of 10001 bytes exceeds the limit of 10000 bytes (max-request-bytes)"},
		{"too large as sent and chunked", literal(20_000), -1, http.StatusRequestEntityTooLarge, "request body exceeds the limit of 10000 bytes (max-request-bytes)"},
		{"too large by claim", claim(100_001), 0, http.StatusRequestEntityTooLarge, "request body of 100001 bytes exceeds the limit of 100000 bytes (max-decoded-bytes)"},
		{"too large by claim and chunked", claim(100_001), -1, http.StatusRequestEntityTooLarge, "(max-decoded-bytes)"},
		{"huge claim", claim(1<<32 - 1), 0, http.StatusRequestEntityTooLarge, "4294967295 bytes"},
		{"impossible claim", claim(1 << 40), 0, http.StatusBadRequest, "snappy"},
		{"claim without end", bytes.Repeat([]byte{0xff}, 20), 0, http.StatusBadRequest, "snappy"},
		{"claim that so few bytes cannot hold", append(binary.AppendUvarint(nil, 90_000), 1, 2, 3), 0, http.StatusBadRequest, "6 bytes cannot hold the 90000 bytes that they claim"},
		{"the same and chunked", append(binary.AppendUvarint(nil, 90_000), 1, 2, 3), -1, http.StatusBadRequest, "cannot hold"},
		{"claim of more than there is", append([]byte{100}, good[1:]...), 0, http.StatusBadRequest, "snappy"},
		{"claim of less than there is", append([]byte{3}, good[1:]...), 0, http.StatusBadRequest, "snappy"},
		{"cut short", good[:len(good)-1], 0, http.StatusBadRequest, "snappy"},
		{"cut short by the connection", good[:len(good)-1], int64(len(good)), http.StatusBadRequest, "invalid request body: read"},
		{"cut short by the connection at once", good[:3], int64(len(good)), http.StatusBadRequest, "invalid request body"},
		{"not compressed", []byte("GET / HTTP/1.1\r\n"), 0, http.StatusBadRequest, "snappy"},
		{"framed", framed(t, good), 0, http.StatusBadRequest, "snappy"},
		{"cut message", snappy.Encode(nil, encode(t, protocolV1, everything())[:300]), 0, http.StatusBadRequest, "malformed remote-write message: truncated protobuf message"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.length == 0 {
				tc.length = int64(len(tc.body))
			}
			for _, mode := range modes {
				l := calmWith(t, mode, small())
				w := l.serve(request(bytes.NewReader(tc.body), tc.length))
				require.Equal(t, tc.code, w.Code, "%s: %s", mode, w.Body)
				require.Contains(t, w.Body.String(), tc.want)
				require.Zero(t, l.inflight(), "%s: bytes in flight were not given back", mode)
			}
		})
	}
}

// framed is the snappy format with frames, which remote_write does not use.
func framed(t *testing.T, b []byte) []byte {
	var out bytes.Buffer
	w := snappy.NewBufferedWriter(&out)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestBrokenConnection(t *testing.T) {
	l := calm(t)
	good := packed(t, encodeV1([]item{gauge("m", at(someTime, 1))}))
	for _, length := range []int64{-1, int64(len(good))} {
		for _, n := range []int{0, 5, len(good) - 1} {
			body := io.MultiReader(bytes.NewReader(good[:n]), iotest.ErrReader(errors.New("connection reset")))
			w := l.serve(request(body, length))
			require.Equal(t, http.StatusBadRequest, w.Code)
			require.Contains(t, w.Body.String(), "connection reset")
		}
		require.Equal(t, http.StatusNoContent, l.serve(request(iotest.OneByteReader(bytes.NewReader(good)), length)).Code)
	}
}

// allocated returns how many bytes were set aside while f ran.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLyingHeaderTakesNoMemory claims 60 MB with few bytes.
func TestLyingHeaderTakesNoMemory(t *testing.T) {
	l := calm(t)
	for _, length := range []int64{-1, 0} {
		body := append(binary.AppendUvarint(nil, 60<<20), bytes.Repeat([]byte{1}, 1000)...)
		if length == 0 {
			length = int64(len(body))
		}
		var w *httptest.ResponseRecorder
		require.Less(t, allocated(func() { w = l.serve(request(bytes.NewReader(body), length)) }), uint64(1<<20))
		require.Equal(t, http.StatusBadRequest, w.Code)
	}
}

// TestDenseMessages sends messages of a few MB that consist of the smallest possible fields: each
// would take a hundred times its size in memory.
func TestDenseMessages(t *testing.T) {
	const n = 2 << 20
	repeat := func(b ...byte) []byte { return bytes.Repeat(b, n/len(b)) }
	within := func(field byte, b []byte) []byte {
		return append(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(b))), b...)
	}
	label := within(1, append(within(1, []byte("__name__")), within(2, []byte("m"))...))
	for _, tc := range []struct {
		name    string
		version protocol
		message []byte
	}{
		{"series", protocolV1, repeat(0x0a, 0)},
		{"labels", protocolV1, within(1, repeat(0x0a, 0))},
		{"samples of a series", protocolV1, within(1, append(repeat(0x12, 0), label...))},
		{"exemplars of a series", protocolV1, within(1, repeat(0x1a, 0))},
		{"exemplar's labels", protocolV1, within(1, within(3, repeat(0x0a, 0)))},
		{"histograms of a series", protocolV1, within(1, repeat(0x22, 0))},
		{"buckets of a histogram", protocolV1, within(1, within(4, within(12, repeat(0))))},
		{"metadata", protocolV1, repeat(0x1a, 0)},
		{"named metadata", protocolV1, repeat(0x1a, 3, 0x12, 1, 'a')},
		{"symbols", protocolV2, repeat(0x22, 0)},
		{"series", protocolV2, repeat(0x2a, 0)},
		{"references", protocolV2, within(5, within(1, repeat(0)))},
		{"references one by one", protocolV2, within(5, repeat(8, 0))},
		{"samples of a series", protocolV2, within(5, repeat(0x12, 0))},
		{"histograms of a series", protocolV2, within(5, repeat(0x1a, 0))},
		{"exemplars of a series", protocolV2, within(5, repeat(0x22, 0))},
		{"exemplar's references", protocolV2, within(5, within(4, within(1, repeat(0))))},
		{"metadata of a series", protocolV2, within(5, repeat(0x2a, 0))},
	} {
		t.Run(fmt.Sprintf("%s in %s", tc.name, tc.version), func(t *testing.T) {
			l := calm(t)
			body := snappy.Encode(nil, tc.message)
			require.Less(t, len(body), 300_000)
			content := "application/x-protobuf"
			if tc.version == protocolV2 {
				content = contentV2
			}
			var w *httptest.ResponseRecorder
			used := allocated(func() { w = l.post(body, "Content-Type", content) })
			require.Less(t, used, uint64(200<<20))
			require.GreaterOrEqual(t, w.Code, 400)
			require.Less(t, w.Code, 500, w.Body.String())
			require.Empty(t, l.store.Keys())
		})
	}
}

// TestOrdinaryMessagesHaveRoom sends requests with the fewest bytes per series that occur with real
// senders.
func TestOrdinaryMessagesHaveRoom(t *testing.T) {
	var short []item
	for i := range 50_000 {
		short = append(short, item{Lset: []string{"__name__", "m", "i", fmt.Sprint(i)}, Floats: []segment.Float{at(someTime, 0)}})
	}
	one := gauge("m")
	for i := range int64(100_000) {
		one.Floats = append(one.Floats, at(someTime-i, 0))
	}
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		l.ok(version, short)
		l.ok(version, []item{one})
		require.Len(t, l.read(anonymous), 50_001)
	})
}

func TestTooManyTenants(t *testing.T) {
	set := quick()
	set.MaxTenants = 2
	for _, mode := range modes {
		t.Run("mode="+string(mode), func(t *testing.T) { testTooManyTenants(t, calmWith(t, mode, set)) })
	}
}

func testTooManyTenants(t *testing.T, l *lake) {
	items := []item{gauge("m", at(someTime, 1))}
	l.ok(protocolV1, items, "X-Scope-OrgID", "a")
	l.ok(protocolV1, items, "X-Scope-OrgID", "b")
	w := l.send(protocolV1, items, "X-Scope-OrgID", "c")
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "too many tenants: 2 are writing, which is the limit (max-tenants)")
	l.ok(protocolV1, items, "X-Scope-OrgID", "b")
}

func TestTooManyBytesInFlight(t *testing.T) {
	l := newLake(t, small(), func() time.Time { return time.UnixMilli(someTime) })
	all := l.stage.inflight.Admit("somebody")
	require.NoError(t, all.Await(t.Context(), 0, l.stage.set.MaxInflightBytes, true))
	w := l.send(protocolV2, everything())
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "too many bytes in flight: the limit is 1048576 bytes (max-inflight-bytes), tenant anonymous holds 0 of them; try again")
	require.Equal(t, []string{"0", "0", "0"}, writtenHeaders(w.Header()))
	require.Equal(t, 1.0, testutil.ToFloat64(l.stage.met.limited.WithLabelValues("max-inflight-bytes")))
	all.Release()
	l.ok(protocolV2, everything())
}

func TestSettings(t *testing.T) {
	s := DefaultSettings()
	require.NoError(t, s.Validate())
	s.MaxInflightBytes = s.MaxRequestBytes + s.MaxDecodedBytes - 1
	require.ErrorContains(t, s.Validate(), "ingest.max-inflight-bytes: want room for one request, at least ingest.max-request-bytes (16777216) + ingest.max-decoded-bytes (67108864), got 83886079")
	err := (&Settings{FlushInterval: -1, Limits: admission.Limits{Limits: remotewrite.Limits{CreationGracePeriod: -1}}}).Validate()
	for _, what := range []string{
		"ingest.flush-interval: want at least 0, got -1ns", "ingest.flush-samples: want at least 1, got 0", "ingest.flush-timeout: want more than 0, got 0s",
		"ingest.max-request-bytes", "ingest.max-decoded-bytes", "ingest.inflight-wait", "ingest.max-tenants", "ingest.tenant-idle", "ingest.max-series-bytes",
		"validation.max-label-names-per-series", "validation.max-length-label-name", "validation.max-length-label-value", "validation.create-grace-period: want at least 0, got -1ns",
	} {
		require.ErrorContains(t, err, what)
	}
	require.ErrorContains(t, err, `ingest.mode: want one of auto, grouped, direct, buffered, got ""`)
	require.ErrorContains(t, err, "ingest.flush-timeout: want less than ingest.settle-delay (0s), so that no merge overlooks a segment that is still being written, got 0s")
	require.Equal(t, 31, strings.Count(err.Error(), "\n"))
	for _, tc := range []struct {
		mode Mode
		last time.Duration // flush timeout
		want string
	}{
		{Direct, 59 * time.Second, ""},
		{Direct, time.Minute, "ingest.flush-timeout: want less than ingest.settle-delay (1m0s)"},
		{Grouped, 59 * time.Second, ""},
		{Grouped, time.Minute, "ingest.flush-timeout: want less than ingest.settle-delay (1m0s)"},
		{Auto, time.Second, ""},
		{Buffered, time.Second, "ingest.mode: buffered wants the URL of a queue in ingest.queue-url"},
	} {
		s := DefaultSettings()
		s.Mode, s.FlushTimeout = tc.mode, tc.last
		if tc.want == "" {
			require.NoError(t, s.Validate())
		} else {
			require.ErrorContains(t, s.Validate(), tc.want)
		}
	}
	_, err = New(Settings{}, nil, nil, nil, nil)
	require.ErrorContains(t, err, "ingest settings: ")
}
