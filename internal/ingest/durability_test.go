package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/tests/support/memstore"
)

var errDown = errors.New("store is down")

// TestFailedWriteIsNotAcknowledged fails a write before and after its effect. The sender gets an
// error, and when it sends the request again, each sample counts once.
func TestFailedWriteIsNotAcknowledged(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault memstore.Fault
		left  int // segments after the failure
	}{
		{"before", memstore.Fault{Err: errDown, When: memstore.Before}, 0},
		{"after", memstore.Fault{Err: errDown, When: memstore.After}, 1},
		{"slow down", memstore.Fault{Err: memstore.Status(503), When: memstore.Before}, 0},
		{"conflict", memstore.Fault{Err: memstore.Status(409), When: memstore.Before}, 0},
		{"precondition after a lost answer", memstore.Fault{Err: memstore.Status(412), When: memstore.After}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, version protocol) {
				l := calm(t)
				l.faults.Add(memstore.On(memstore.Put), tc.fault)
				w := l.send(version, everything())
				require.Equal(t, http.StatusInternalServerError, w.Code)
				if errors.Is(tc.fault.Err, errDown) {
					l.undisclosed(w.Body.String(), errDown.Error())
				}
				if version == protocolV2 {
					require.Equal(t, []string{"0", "0", "0"}, writtenHeaders(w.Header()))
				}
				require.Len(t, l.keys(anonymous), tc.left)
				l.ok(version, everything())
				require.Len(t, l.keys(anonymous), tc.left+1)
				require.Equal(t, want(t, version, everything()), l.read(anonymous))
			})
		})
	}
}

// TestAllSegmentsOrNoAcknowledgement fails one of several segments of a request.
func TestAllSegmentsOrNoAcknowledgement(t *testing.T) {
	var floats item
	const n = 20
	for i := range int64(n) {
		floats = gauge("m", append(floats.Floats, at(someTime-i*key.WindowMillis, float64(i)))...)
	}
	for failing := range n {
		l := calm(t)
		puts := 0
		l.faults.Add(func(c memstore.Call) bool {
			if c.Op == memstore.Put {
				puts++
			}
			return puts == failing+1
		}, memstore.Fault{Err: errDown, When: memstore.When(failing % 2)})
		w := l.send(protocolV1, []item{floats})
		require.Equal(t, http.StatusInternalServerError, w.Code)
		require.Zero(t, l.faults.Left())
		l.ok(protocolV1, []item{floats})
		require.Equal(t, want(t, protocolV1, []item{inTime(floats)}), l.read(anonymous))
	}
}

// inTime reverses an item's floats.
func inTime(it item) item {
	out := gauge("m")
	for i := range it.Floats {
		out.Floats = append(out.Floats, it.Floats[len(it.Floats)-1-i])
	}
	return out
}

// answers collects the answers of concurrent requests.
type answers struct {
	l   *lake
	got chan *httptest.ResponseRecorder
}

func (l *lake) concurrently() *answers {
	return &answers{l, make(chan *httptest.ResponseRecorder, 1000)}
}

func (a *answers) send(version protocol, items ...item) {
	go func() { a.got <- a.l.send(version, items) }()
}

// codes waits for n answers and counts their statuses.
func (a *answers) codes(n int) map[int]int {
	out := map[int]int{}
	for range n {
		out[(<-a.got).Code]++
	}
	return out
}

// wall is a lake by the clock of a synctest bubble.
func wall(t *testing.T, set Settings) *lake { return newLake(t, set, time.Now) }

// nowSample is a sample of the bubble's present.
func nowSample(v float64) item { return gauge("m", at(time.Now().UnixMilli(), v)) }

// hold makes the next write wait until the returned function is called.
func (l *lake) hold() func() {
	until := make(chan struct{})
	l.faults.Add(memstore.On(memstore.Put), memstore.Fault{Until: until})
	return func() { close(until) }
}

// TestNoAnswerBeforeDurable holds a write: the request waits with it.
func TestNoAnswerBeforeDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wall(t, quick())
		release := l.hold()
		a := l.concurrently()
		a.send(protocolV1, nowSample(1))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Empty(t, a.got)
		require.Empty(t, l.store.Keys())
		release()
		require.Equal(t, map[int]int{204: 1}, a.codes(1))
		require.Len(t, l.store.Keys(), 1)
	})
}

// TestFlushTimeout ends a write that hangs.
func TestFlushTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wall(t, quick())
		defer l.hold()()
		begin := time.Now()
		w := l.send(protocolV1, []item{nowSample(1)})
		require.Equal(t, http.StatusInternalServerError, w.Code)
		require.Equal(t, DefaultSettings().FlushTimeout, time.Since(begin))
		l.ok(protocolV1, []item{nowSample(2)})
	})
}

// TestSendersShareASegment lets requests come while another is being flushed.
func TestSendersShareASegment(t *testing.T) {
	bubble(t, func(t *testing.T) (*lake, map[string]content) {
		l := wall(t, quick())
		release := l.hold()
		a := l.concurrently()
		a.send(protocolV1, nowSample(0))
		synctest.Wait()
		var items []item
		for i := range 50 {
			items = append(items, gauge(fmt.Sprintf("m%02d", i), at(time.Now().UnixMilli(), float64(i))))
			a.send(protocols[i%2], items[i])
		}
		synctest.Wait()
		release()
		require.Equal(t, map[int]int{204: 51}, a.codes(51))
		require.Len(t, l.store.Keys(), 2)
		require.Equal(t, int64(50), l.info(l.keys(anonymous)[1]).Rows)
		return l, want(t, protocolV1, append(items, nowSample(0)))
	})
}

// TestLastOfAGroupWins sends one sample in several requests of a group: the last to come counts.
func TestLastOfAGroupWins(t *testing.T) {
	bubble(t, func(t *testing.T) (*lake, map[string]content) {
		l := wall(t, quick())
		release := l.hold()
		a := l.concurrently()
		a.send(protocolV1, nowSample(0))
		synctest.Wait()
		for i := range 10 {
			a.send(protocols[i%2], nowSample(float64(i)), nowSample(float64(i+1)))
			synctest.Wait()
		}
		release()
		require.Equal(t, map[int]int{204: 11}, a.codes(11))
		require.Equal(t, int64(1), l.info(l.keys(anonymous)[1]).Samples)
		return l, want(t, protocolV1, []item{nowSample(10)})
	})
}

// TestGroupFailsTogether fails the flush of a group that contains an invalid series: every sender
// is asked to repeat its request, including the sender of that series.
func TestGroupFailsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wall(t, quick())
		release := l.hold()
		a := l.concurrently()
		a.send(protocolV1, nowSample(0))
		synctest.Wait()
		l.faults.Add(memstore.On(memstore.Put), memstore.Fault{Err: errDown})
		for range 5 {
			a.send(protocolV2, nowSample(1))
			a.send(protocolV2, nowSample(2), item{Lset: []string{"nameless", "x"}, Floats: nowSample(1).Floats})
		}
		synctest.Wait()
		release()
		require.Equal(t, map[int]int{204: 1, 500: 10}, a.codes(11))
		require.Len(t, l.store.Keys(), 1)
	})
}

// TestRemoteInterval: the segments in a store that charges for requests are an interval apart, and
// a lone request does not wait.
func TestRemoteInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wall(t, DefaultSettings())
		begin := time.Now()
		l.ok(protocolV1, []item{nowSample(1)})
		require.Zero(t, time.Since(begin))
		l.ok(protocolV1, []item{nowSample(2)})
		require.Equal(t, RemoteFlushInterval, time.Since(begin))
		time.Sleep(time.Minute)
		begin = time.Now()
		l.ok(protocolV1, []item{nowSample(3)})
		require.Zero(t, time.Since(begin))
	})
}

// TestFullGroupIsFlushedAtOnce presses with samples.
func TestFullGroupIsFlushedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := DefaultSettings()
		set.FlushSamples = 10
		l := wall(t, set)
		time.Sleep(time.Hour) // away from the border of a window
		begin := time.Now()
		for i := range 5 {
			it := gauge("m")
			for j := range 10 {
				it.Floats = append(it.Floats, at(time.Now().UnixMilli()-int64(10*i+j), 1))
			}
			l.ok(protocolV1, []item{it})
		}
		require.Zero(t, time.Since(begin))
		require.Len(t, l.store.Keys(), 5)
	})
}

// TestCloseFlushes closes a stage while requests wait: they are made durable and answered; later
// ones are refused.
func TestCloseFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wall(t, DefaultSettings())
		release := l.hold()
		a := l.concurrently()
		a.send(protocolV1, nowSample(0))
		synctest.Wait()
		for i := range 5 {
			a.send(protocolV1, gauge(fmt.Sprint("m", i), at(time.Now().UnixMilli(), 1)))
		}
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- l.stage.Close(t.Context()) }()
		synctest.Wait()
		w := l.send(protocolV1, []item{nowSample(9)})
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), "ingest is shutting down")
		require.Empty(t, closed)
		release()
		require.Equal(t, map[int]int{204: 6}, a.codes(6))
		require.NoError(t, <-closed)
		require.Len(t, l.store.Keys(), 2)
		require.NoError(t, l.stage.Close(t.Context()), "again")
	})
}

// TestCloseGivesUp: a Close whose context ends first answers every waiting request such that the
// sender repeats it elsewhere.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := wall(t, DefaultSettings())
		defer l.hold()()
		a := l.concurrently()
		a.send(protocolV1, nowSample(0))
		synctest.Wait()
		for range 5 {
			a.send(protocolV1, nowSample(1))
		}
		slow, finish := newSlowBody(packed(t, encodeV1([]item{nowSample(2)})))
		go func() { a.got <- l.serve(request(slow, -1)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, l.stage.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, map[int]int{500: 1, 503: 5}, a.codes(6), "the flush under way failed, the group behind it was not begun")
		finish()
		require.Equal(t, map[int]int{503: 1}, a.codes(1), "came when nobody flushes any more")
		require.Empty(t, l.store.Keys())
	})
}

// TestCancelledRequest disconnects clients while their samples wait: the flushed segments are
// complete and in order.
func TestCancelledRequest(t *testing.T) {
	bubble(t, func(t *testing.T) (*lake, map[string]content) {
		l := wall(t, quick())
		release := l.hold()
		a := l.concurrently()
		a.send(protocolV1, nowSample(0))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		var items []item
		for i := range 30 {
			it := gauge(fmt.Sprintf("m%02d", i), at(time.Now().UnixMilli(), float64(i)))
			items = append(items, it)
			go func() {
				r := request(newReader(packed(t, encodeV1([]item{it}))), -1)
				if i%2 == 0 {
					r = r.WithContext(ctx)
				}
				a.got <- l.serve(r)
			}()
		}
		synctest.Wait()
		cancel()
		require.Equal(t, map[int]int{500: 15}, a.codes(15))
		for i := range 30 { // the pools hand out what the cancelled requests used
			a.send(protocolV2, gauge(fmt.Sprintf("n%02d", i), at(time.Now().UnixMilli(), -1)))
			items = append(items, gauge(fmt.Sprintf("n%02d", i), at(time.Now().UnixMilli(), -1)))
		}
		synctest.Wait()
		release()
		require.Equal(t, map[int]int{204: 46}, a.codes(46))
		return l, want(t, protocolV1, append(items, nowSample(0)))
	})
}
