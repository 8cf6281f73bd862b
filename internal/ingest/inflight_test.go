package ingest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// gatedStore holds the puts of some tenants until its gate opens.
type gatedStore struct {
	objstore.Store
	gate chan struct{}
	of   func(tenant string) bool

	hanging atomic.Int64 // puts
}

func (g *gatedStore) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	s, err := key.ParseSegment(k)
	if err != nil {
		return "", err
	}
	if g.of(s.Tenant) {
		g.hanging.Add(1)
		defer g.hanging.Add(-1)
		select {
		case <-g.gate:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return g.Store.Put(ctx, k, body, cond)
}

// patient are settings under which nothing ends by itself in the time of a test.
func patient() Settings {
	s := quick()
	s.SettleDelay, s.FlushTimeout, s.BodyGrace = 2*time.Hour, time.Hour, time.Hour
	return s
}

// served is a lake behind a real HTTP server, whose puts of some tenants wait.
type served struct {
	*lake
	*gatedStore
	server *httptest.Server
	bodies atomic.Int64 // requests of which something has arrived
}

func serveGated(t *testing.T, set Settings, of func(tenant string) bool) *served {
	s := &served{}
	s.lake = newLakeThrough(t, set, func() time.Time { return time.UnixMilli(someTime) }, func(store objstore.Store) objstore.Store {
		s.gatedStore = &gatedStore{Store: store, gate: make(chan struct{}), of: of}
		return s.gatedStore
	})
	h := s.stage.Handler()
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &countedBody{ReadCloser: r.Body, n: &s.bodies}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.server.Close)
	return s
}

func nobody(string) bool { return false }

// countedBody counts itself once something of it has been read.
type countedBody struct {
	io.ReadCloser
	n    *atomic.Int64
	once sync.Once
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.once.Do(func() { b.n.Add(1) })
	}
	return n, err
}

// try posts a body over HTTP and returns the status, 0 if there is no answer.
func (s *served) try(ctx context.Context, tenant string, body []byte) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.server.URL, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-Scope-OrgID", tenant)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
		return -1
	}
	return resp.StatusCode
}

// announce opens a connection, announces a body that decodes to 60 MiB, and sends ten bytes of it.
func (s *served) announce(t *testing.T, tenant string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	before := s.bodies.Load()
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-Scope-OrgID: %s\r\nContent-Length: %d\r\n\r\n%s", tenant, 4<<20,
		append(binary.AppendUvarint(nil, 60<<20), bytes.Repeat([]byte{0xfe}, 6)...))
	require.NoError(t, err)
	eventually(t, func() bool { return s.bodies.Load() > before })
	return conn
}

// eventually waits for a state that must come.
func eventually(t *testing.T, state func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !state(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "the state did not come")
	}
}

func smallBody(t *testing.T) []byte {
	return packed(t, encodeV1([]item{gauge("m", at(someTime, 1))}))
}

// TestAnnouncedBodiesTakeNothing lets connections announce a hundred times the limit and send ten
// bytes each: nobody else is refused.
func TestAnnouncedBodiesTakeNothing(t *testing.T) {
	s := serveGated(t, patient(), nobody)
	for range 100 {
		s.announce(t, "attacker")
	}
	require.LessOrEqual(t, s.inflight(), int64(100*64<<10))
	for _, tenant := range []string{"attacker", "victim"} {
		require.Equal(t, http.StatusNoContent, s.try(t.Context(), tenant, smallBody(t)), tenant)
	}
}

// TestStalledBodyIsRefused sends the beginning of a body and no more.
func TestStalledBodyIsRefused(t *testing.T) {
	set := patient()
	set.BodyGrace = 50 * time.Millisecond
	s := serveGated(t, set, nobody)
	conn := s.announce(t, "slow")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "senders try again")
	require.True(t, resp.Close)
	require.Contains(t, string(answer), "request body arrives too slowly: 10 bytes so far, the limit is 8192 bytes a second (min-body-rate) after 50ms (body-grace); try again")
	require.Equal(t, 1.0, testutil.ToFloat64(s.stage.met.limited.WithLabelValues("min-body-rate")))
	eventually(t, func() bool { return s.inflight() == 0 })
}

// TestBodyRate moves the clock while a body arrives byte by byte.
func TestBodyRate(t *testing.T) {
	for _, tc := range []struct {
		name string
		step time.Duration
		code int
	}{
		{"as slow as can be", time.Millisecond, http.StatusNoContent},
		{"too slow", 2 * time.Second, http.StatusServiceUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := calm(t)
			body := packed(t, encodeV1(everything()))
			sent := 0
			w := l.serve(request(readerFunc(func(p []byte) (int, error) {
				if sent == len(body) {
					return 0, io.EOF
				}
				l.later.Add(int64(tc.step))
				p[0] = body[sent]
				sent++
				return 1, nil
			}), -1))
			require.Equal(t, tc.code, w.Code, w.Body)
			require.Zero(t, l.inflight())
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// blocks are bodies of samples that fill a segment and that no other body has.
func blocks(t *testing.T, n, series, samples int) (bodies [][]byte, items [][]item) {
	for k := range n {
		var its []item
		for i := range series {
			it := item{Lset: []string{"__name__", fmt.Sprintf("m%d", k), "i", fmt.Sprint(i)}}
			for j := range samples {
				it.Floats = append(it.Floats, at(someTime+int64(j), float64(k*i)+float64(j)/7))
			}
			its = append(its, it)
		}
		items = append(items, its)
		bodies = append(bodies, packed(t, encodeV1(its)))
	}
	return bodies, items
}

// heap is the memory that is alive; what pools keep survives one collection, and not two.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestInflightIsHeldUntilTheFlush has 24 senders write at once while puts hang, and come again when
// they are refused or their patience is over. The memory stays within the limit, and everything
// that is acknowledged when puts go on is there.
func TestInflightIsHeldUntilTheFlush(t *testing.T) {
	const senders, limit = 24, 16 << 20
	for _, mode := range []Mode{Grouped, Direct} {
		t.Run("mode="+string(mode), func(t *testing.T) {
			set := patient()
			set.Mode, set.MaxRequestBytes, set.MaxDecodedBytes, set.MaxInflightBytes, set.InflightWait = mode, 1<<20, 2<<20, limit, time.Millisecond
			set.SettleDelay = 3 * time.Hour
			s := serveGated(t, set, func(string) bool { return true })
			bodies, items := blocks(t, senders, 50, 600)
			before := heap()
			var refused, gone, resting atomic.Int64
			var paused, over atomic.Bool
			acknowledged := make([]bool, senders)
			var all sync.WaitGroup
			for i, body := range bodies {
				all.Go(func() {
					for !acknowledged[i] {
						if paused.Load() {
							resting.Add(1)
							eventually(t, func() bool { return !paused.Load() })
							resting.Add(-1)
						}
						ctx, cancel := context.Background(), func() {}
						if mode == Grouped && !over.Load() {
							ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
						}
						switch code := s.try(ctx, anonymous, body); code {
						case http.StatusNoContent:
							acknowledged[i] = true
						case http.StatusServiceUnavailable:
							refused.Add(1)
						case 0:
							gone.Add(1)
						default:
							t.Errorf("status %d", code)
							acknowledged[i] = true
						}
						cancel()
					}
				})
			}
			eventually(t, func() bool {
				used := s.inflight()
				require.LessOrEqual(t, used, int64(limit))
				return refused.Load() > 10*senders && (mode == Direct || gone.Load() > 0)
			})
			// Nobody sends while the heap is measured: what is alive then is what hanging puts
			// hold.
			paused.Store(true)
			eventually(t, func() bool {
				return resting.Load() == senders || mode == Direct && resting.Load()+s.hanging.Load() == senders
			})
			require.Positive(t, s.inflight())
			grown := heap() - before
			t.Logf("heap grew by %d bytes at a limit of %d, %d were charged", grown, limit, s.inflight())
			require.Less(t, grown, int64(limit), "what is charged covers what is held")
			require.Positive(t, testutil.ToFloat64(s.stage.met.limited.WithLabelValues("max-inflight-bytes")))
			over.Store(true)
			paused.Store(false)
			close(s.gate)
			all.Wait()
			eventually(t, func() bool { return s.inflight() == 0 })
			got := s.read(anonymous)
			for _, its := range items {
				for name, w := range want(t, protocolV1, its) {
					require.Equal(t, w, got[name])
				}
			}
		})
	}
}

// TestTenantsShareTheInflightBytes lets one tenant take all that it can get, which puts then hold:
// another tenant goes on writing.
func TestTenantsShareTheInflightBytes(t *testing.T) {
	set := patient()
	set.MaxRequestBytes, set.MaxDecodedBytes, set.MaxInflightBytes, set.InflightWait = 1<<20, 2<<20, 16<<20, time.Millisecond
	s := serveGated(t, set, func(tenant string) bool { return tenant == "greedy" })
	bodies, _ := blocks(t, 24, 50, 600)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var refused atomic.Int64
	for _, body := range bodies {
		all.Go(func() {
			for s.try(ctx, "greedy", body) == http.StatusServiceUnavailable {
				refused.Add(1)
			}
		})
	}
	eventually(t, func() bool { return refused.Load() > 100 })
	for i, body := range bodies {
		require.Equal(t, http.StatusNoContent, s.try(t.Context(), "modest", body), i)
	}
	cancel()
	close(s.gate)
	all.Wait()
}

// TestRefusedRequestsTeachLittle sends label sets that nobody has sent before, in requests that are
// refused: what the stage learns of them stays within the limits.
func TestRefusedRequestsTeachLittle(t *testing.T) {
	for _, tc := range []struct {
		name    string
		tenants int
		limit   func(*Settings)
	}{
		{"of one tenant", 1, func(s *Settings) { s.MaxSeriesBytes = 1 << 20 }},
		{"of all tenants", 10, func(s *Settings) { s.MaxKnownBytes = 1 << 20 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := quick()
			set.MaxWindows = 1
			tc.limit(&set)
			l := calmWith(t, Grouped, set)
			for i := range 100 {
				var its []item
				for j := range 200 {
					its = append(its, gauge(fmt.Sprintf("m%d_%d", i, j), at(someTime, 1), at(0, 1)))
				}
				require.Equal(t, http.StatusBadRequest, l.send(protocolV1, its, "X-Scope-OrgID", fmt.Sprint("t", i%tc.tenants)).Code)
			}
			var known int64
			for _, tenant := range l.stage.tenants {
				known += tenant.known.Load().Bytes()
			}
			require.Less(t, known, int64(3<<20))
		})
	}
}

// TestTextsByReferenceAreCharged sends 2.0 messages whose few bytes name long texts again and
// again.
func TestTextsByReferenceAreCharged(t *testing.T) {
	within := func(field byte, b []byte) []byte {
		return append(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(b))), b...)
	}
	symbols := []string{"", "__name__", "m", strings.Repeat("x", 2000)}
	var message []byte
	for _, s := range symbols {
		message = append(message, within(4, []byte(s))...)
	}
	exemplar := within(4, append(within(1, []byte{2, 3}), binary.AppendUvarint([]byte{3 << 3}, uint64(someTime))...))
	symbol := within(1, []byte{1, 2})
	message = append(message, within(5, append(symbol, bytes.Repeat(exemplar, 100_000)...))...)
	l := calm(t)
	w := l.post(snappy.Encode(nil, message), "Content-Type", contentV2)
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "max-inflight-bytes")
}

// TestConsumerTakesManyWindows consumes what a front with another limit has accepted.
func TestConsumerTakesManyWindows(t *testing.T) {
	set := quick()
	set.MaxWindows = 1000
	l := calmWith(t, Buffered, set)
	l.manual = true
	it := gauge("m")
	for i := range int64(150) {
		it.Floats = append(it.Floats, at(i*key.WindowMillis, 1))
	}
	l.ok(protocolV1, []item{it})
	l.stage.set.MaxWindows = 1
	require.Empty(t, l.consume())
	require.Len(t, l.keys(anonymous), 150)
}

// TestConsumerHoldsWhatItWrites consumes messages whose loads together are more than the limit
// while puts hang.
func TestConsumerHoldsWhatItWrites(t *testing.T) {
	set := patient()
	set.Mode, set.MaxRequestBytes, set.MaxDecodedBytes, set.MaxInflightBytes, set.InflightWait = Buffered, 1<<20, 2<<20, 16<<20, time.Millisecond
	s := serveGated(t, set, func(string) bool { return true })
	s.manual = true
	bodies, items := blocks(t, 24, 50, 600)
	for _, body := range bodies {
		require.Equal(t, http.StatusNoContent, s.post(body).Code)
	}
	done := make(chan []string, 1)
	go func() { done <- s.consume() }()
	eventually(t, func() bool {
		require.LessOrEqual(t, s.inflight(), set.MaxInflightBytes)
		return s.stage.inflight.Waiting() > 0 // for what hanging puts hold
	})
	require.Greater(t, s.inflight(), int64(4<<20))
	close(s.gate)
	require.Empty(t, <-done)
	require.Zero(t, s.inflight())
	got := s.read(anonymous)
	for _, its := range items {
		for name, w := range want(t, protocolV1, its) {
			require.Equal(t, w, got[name])
		}
	}
}

// TestWritersHoldTheMemoryOfTheProcess refuses writes of a process that is at its limit, though
// little of it is theirs.
func TestWritersHoldTheMemoryOfTheProcess(t *testing.T) {
	for _, mode := range modes {
		t.Run("mode="+string(mode), func(t *testing.T) {
			set := quick()
			set.InflightWait = time.Millisecond
			var used atomic.Int64
			var times atomic.Int64
			clock := func() time.Time { return time.Unix(times.Add(1), 0) } // every measurement is a new one
			process := memory.New(1<<30, memory.Probe{Usage: used.Load, Free: func() {}, Now: clock}, nil)
			set.Mode = mode
			l := newLakeThrough(t, set, func() time.Time { return time.UnixMilli(someTime) }, func(s objstore.Store) objstore.Store { return s }, Within(process))
			l.ok(protocolV1, everything())
			require.NoError(t, process.TryAcquire(1<<30-tenantBytes), "all else was given back")
			process.Release(1<<30 - tenantBytes)
			used.Store(1 << 30)
			w := l.send(protocolV1, everything())
			require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			require.Contains(t, w.Body.String(), memory.Flag)
			require.Equal(t, 1.0, testutil.ToFloat64(l.stage.met.limited.WithLabelValues("memory-limit")))
			used.Store(0)
			l.ok(protocolV1, everything())
			require.Zero(t, l.inflight())
		})
	}
}

// TestTenantsHoldTheMemoryOfTheProcess: names of tenants are free, so each takes of the memory of the
// process until it has been idle.
func TestTenantsHoldTheMemoryOfTheProcess(t *testing.T) {
	const limit = 2 << 20
	process := memory.New(limit, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, nil)
	set := quick()
	set.Mode, set.InflightWait = Direct, time.Millisecond
	l := newLakeThrough(t, set, func() time.Time { return time.UnixMilli(someTime) }, func(s objstore.Store) objstore.Store { return s }, Within(process))
	send := func(i int) *httptest.ResponseRecorder {
		return l.send(protocolV1, []item{gauge("m", at(someTime, 1))}, "X-Scope-OrgID", fmt.Sprint(i))
	}
	n := 0
	for ; send(n).Code == http.StatusNoContent; n++ {
		require.Less(t, n, limit/tenantBytes)
	}
	require.Greater(t, n, limit/tenantBytes/2)
	require.Contains(t, send(n).Body.String(), memory.Flag)
	l.later.Add(int64(set.TenantIdle))
	require.Equal(t, http.StatusNoContent, send(n+1).Code)
	require.NoError(t, process.TryAcquire(limit-tenantBytes), "the others are forgotten")
}

// TestUnexpectedErrorsAreNotPassedOn covers what is no failure of the store.
func TestUnexpectedErrorsAreNotPassedOn(t *testing.T) {
	l := calm(t)
	r := httptest.NewRequest(http.MethodPost, "/api/v1/write", nil)
	l.undisclosed(l.stage.public(r, errors.New("secret"), http.StatusInternalServerError)+"\n", "secret")
	require.Equal(t, "malformed", l.stage.public(r, errors.New("malformed"), http.StatusBadRequest))
}
