package ingest

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/ingest/message"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/memstore"
)

// held is a lake whose messages stay on the queue until they are consumed.
func held(t *testing.T) *lake {
	l := calmIn(t, Buffered)
	l.manual = true
	return l
}

// TestQueueFaults fails a send in every way. The sender gets an error, and when it sends the
// request again, each sample counts once.
func TestQueueFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault memqueue.Fault
		code  int
		sent  int // messages of both attempts
	}{
		{"failed", memqueue.Fault{Err: errDown}, http.StatusInternalServerError, 1},
		{"failed but sent", memqueue.Fault{Err: errDown, After: true}, http.StatusInternalServerError, 2},
		{"sent twice", memqueue.Fault{Twice: true}, http.StatusNoContent, 3},
		{"sent twice and failed", memqueue.Fault{Twice: true, Err: errDown, After: true}, http.StatusInternalServerError, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, version protocol) {
				l := held(t)
				l.qfault.Add(memqueue.Send, tc.fault)
				w := l.send(version, everything())
				require.Equal(t, tc.code, w.Code)
				if tc.code != http.StatusNoContent {
					l.undisclosed(w.Body.String(), "send: store is down")
					if version == protocolV2 {
						require.Equal(t, []string{"0", "0", "0"}, writtenHeaders(w.Header()))
					}
				}
				l.ok(version, everything())
				require.Len(t, l.queue.Messages(), tc.sent)
				require.Empty(t, l.store.Keys())
				require.Empty(t, l.consume())
				require.Len(t, l.keys(anonymous), 1, "one segment for all")
				require.Equal(t, want(t, version, everything()), l.read(anonymous))
			})
		})
	}
}

// TestQueueTimeout ends a send that hangs.
func TestQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := quick()
		set.Mode = Buffered
		l := wall(t, set)
		l.manual = true
		never := make(chan struct{})
		defer close(never)
		l.qfault.Add(memqueue.Send, memqueue.Fault{Until: never})
		begin := time.Now()
		require.Equal(t, http.StatusInternalServerError, l.send(protocolV1, []item{nowSample(1)}).Code)
		require.Equal(t, set.FlushTimeout, time.Since(begin))
		l.ok(protocolV1, []item{nowSample(1)})
	})
}

// TestNoAnswerBeforeQueued holds a send: the request waits with it, and Close with the request.
func TestNoAnswerBeforeQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := quick()
		set.Mode = Buffered
		l := wall(t, set)
		l.manual = true
		until := make(chan struct{})
		l.qfault.Add(memqueue.Send, memqueue.Fault{Until: until})
		a := l.concurrently()
		a.send(protocolV1, nowSample(1))
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- l.stage.Close(context.Background()) }()
		time.Sleep(10 * time.Second)
		require.Empty(t, a.got)
		require.Empty(t, closed)
		require.Equal(t, http.StatusServiceUnavailable, l.send(protocolV1, []item{nowSample(2)}).Code)
		close(until)
		require.Equal(t, map[int]int{204: 1}, a.codes(1))
		require.NoError(t, <-closed)
		_, err := l.stage.Consume(context.Background(), l.queue.Messages())
		require.ErrorIs(t, err, group.ErrClosing)
	})
}

// TestOneSegmentForABatch consumes the messages of many requests of several tenants at once.
func TestOneSegmentForABatch(t *testing.T) {
	l := held(t)
	var items []item
	for i := range 30 {
		items = append(items, gauge("m"+strings.Repeat("x", i), at(someTime, float64(i)), at(someTime-int64(i)*1000, 1)))
		l.ok(protocols[i%2], items[i:], "X-Scope-OrgID", []string{"a", "b", "c"}[i%3])
	}
	require.Empty(t, l.consume())
	require.Len(t, l.store.Keys(), 3)
	require.Len(t, l.read("a"), 10)
	require.InDelta(t, 30, testutil.ToFloat64(l.stage.met.messages.WithLabelValues("ok")), 0)
	require.Empty(t, l.queue.Messages())
}

// TestLargeBatches flush a tenant's messages in parts, so that memory is bounded.
func TestLargeBatches(t *testing.T) {
	set := quick()
	set.ConsumeSamples = 10
	l := calmWith(t, Buffered, set)
	l.manual = true
	for i := range int64(12) {
		l.ok(protocolV1, []item{gauge("m", at(someTime+i*3, 0), at(someTime+i*3+1, 0), at(someTime+i*3+2, 0))})
	}
	require.Empty(t, l.consume())
	require.Len(t, l.keys(anonymous), 3, "4 messages of 3 samples reach the limit")
	require.Len(t, l.read(anonymous)[lsetText(gauge("m").Lset)].Floats, 36)
}

// TestRedelivery consumes messages, stops before they are deleted, and consumes them again, with
// and without other messages: the stored samples are the same.
func TestRedelivery(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		l := held(t)
		l.ok(version, everything())
		l.ok(version, []item{gauge("m", at(someTime, 1))})
		first := l.queue.Messages()
		all := want(t, version, append(everything(), gauge("m", at(someTime, 1))))
		for _, ds := range [][]queue.Received{first, first[:1], append(slices.Clone(first), first...), first[1:]} {
			failed, err := l.stage.Consume(t.Context(), ds)
			require.NoError(t, err)
			require.Empty(t, failed)
			require.Equal(t, all, l.read(anonymous))
		}
	})
}

// TestLaterRequestCounts consumes requests in another order than that of their arrival: of samples
// with equal times, the last received one counts.
func TestLaterRequestCounts(t *testing.T) {
	l := held(t)
	for i := range 5 {
		l.ok(protocolV1, []item{gauge("m", at(someTime, float64(i)))})
		l.later.Add(int64(time.Second))
	}
	ds := l.queue.Messages()
	slices.Reverse(ds)
	failed, err := l.stage.Consume(t.Context(), ds)
	require.NoError(t, err)
	require.Empty(t, failed)
	require.Equal(t, want(t, protocolV1, []item{gauge("m", at(someTime, 4))}), l.read(anonymous))
}

// TestPoisonedMessage fails alone, until it is a dead letter.
func TestPoisonedMessage(t *testing.T) {
	l := held(t)
	dead := memqueue.New(memqueue.Settings{Now: l.now})
	l.queue = memqueue.New(memqueue.Settings{Now: l.now, MaxReceives: 3, DeadLetters: dead})
	l.stage.queue = l.queue
	require.NoError(t, l.queue.Send(t.Context(), queue.Message{Body: "nonsense"}))
	l.ok(protocolV1, []item{gauge("m", at(someTime, 1))})
	for range 3 {
		require.Equal(t, []string{"message-1"}, l.consume())
		require.Contains(t, l.log.String(), `msg="message refused; after its last delivery it is a dead letter" message=message-1 tenant="" err="unreadable message: it is not promlake-write/1`)
		require.Equal(t, want(t, protocolV1, []item{gauge("m", at(someTime, 1))}), l.read(anonymous))
	}
	require.Empty(t, l.consume())
	require.Empty(t, l.queue.Messages())
	require.Len(t, dead.Messages(), 1)
	require.Equal(t, 3, dead.Messages()[0].Receives)
}

// TestFailingTenantFailsAlone lets the writes of one tenant fail.
func TestFailingTenantFailsAlone(t *testing.T) {
	for _, when := range []memstore.When{memstore.Before, memstore.After} {
		l := held(t)
		for i := range 9 {
			l.ok(protocolV1, []item{gauge("m", at(someTime+int64(i), 1))}, "X-Scope-OrgID", []string{"a", "b", "c"}[i%3])
		}
		l.faults.Add(func(c memstore.Call) bool { return strings.HasPrefix(c.Key, "v1/b/") }, memstore.Fault{Err: errDown, When: when})
		require.ElementsMatch(t, []string{"message-2", "message-5", "message-8"}, l.consume())
		require.Contains(t, l.log.String(), `msg="messages failed; they will be delivered again" messages=3 first=message-2 tenant=b samples=3`)
		require.Len(t, l.keys("a"), 1)
		require.Len(t, l.keys("c"), 1)
		require.Empty(t, l.consume())
		require.Empty(t, l.queue.Messages())
		require.Len(t, l.read("b")[lsetText(gauge("m").Lset)].Floats, 3)
	}
}

// TestTooManyTenantsInABatch fails those that find no room.
func TestTooManyTenantsInABatch(t *testing.T) {
	l := held(t)
	for _, id := range []string{"a", "b", "c"} {
		l.ok(protocolV1, []item{gauge("m", at(someTime, 1))}, "X-Scope-OrgID", id)
	}
	l.stage.tenants = map[string]*tenantIngest{}
	l.stage.set.MaxTenants = 2
	require.Equal(t, []string{"message-3"}, l.consume())
	l.later.Add(int64(l.stage.set.TenantIdle))
	require.Empty(t, l.consume())
	require.Len(t, l.store.Keys(), 3)
}

// TestDeadline reports what cannot be done in time as failed, before the time is over.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := quick()
		set.Mode = Buffered
		l := wall(t, set)
		l.manual = true
		for _, id := range []string{"a", "b", "c"} {
			l.ok(protocolV1, []item{nowSample(1)}, "X-Scope-OrgID", id)
		}
		never := make(chan struct{})
		defer close(never)
		l.faults.Add(func(c memstore.Call) bool { return strings.HasPrefix(c.Key, "v1/b/") }, memstore.Fault{Until: never})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		failed, err := l.stage.Consume(ctx, l.queue.Messages())
		require.NoError(t, err)
		require.NoError(t, ctx.Err(), "there is time left for the answer")
		require.Equal(t, []string{"message-2"}, failed)

		ctx, cancel = context.WithTimeout(context.Background(), 0)
		defer cancel()
		failed, err = l.stage.Consume(ctx, l.queue.Messages())
		require.NoError(t, err)
		require.Len(t, failed, 3)
		failed, err = l.stage.Consume(context.Background(), l.queue.Messages())
		require.NoError(t, err)
		require.Empty(t, failed)
	})
}

// TestStricterConsumer: a consumer refuses a message that it would store only in part, so that no
// accepted sample is lost.
func TestStricterConsumer(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		l := held(t)
		l.ok(version, everything())
		lax := l.stage.set.Limits
		l.stage.set.Limits.NameScheme = remotewrite.LegacyNames
		strict := calmWith(t, Buffered, l.stage.set)
		failed, err := strict.stage.Consume(t.Context(), l.queue.Messages())
		require.NoError(t, err)
		require.Equal(t, []string{"message-1"}, failed)
		require.Contains(t, strict.log.String(), `this consumer refuses what was accepted: give it the limits that the request was checked by: invalid label name \"ünï\" (label_invalid)`)
		require.Empty(t, strict.store.Keys())
		l.stage.set.Limits = lax
		require.Empty(t, l.consume())

		l.ok(version, []item{gauge("m", at(someTime+1000, 1))})
		strict.stage.set.Limits = lax
		strict.stage.set.Limits.CreationGracePeriod = 0
		failed, err = strict.stage.Consume(t.Context(), l.queue.Messages())
		require.NoError(t, err)
		require.Equal(t, []string{"message-2"}, failed)
		require.Contains(t, strict.log.String(), "timestamp 1700000001000 ms is too far in the future")
		require.Zero(t, strict.discarded(remotewrite.ReasonFuture), "the request was counted where it was accepted")
	})
}

// TestMetadataIsQueuedOnce: descriptions are sent again only if they are new, the last send failed,
// or another window has begun.
func TestMetadataIsQueuedOnce(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		l := held(t)
		a := described("a", "counter", "first")
		l.qfault.Add(memqueue.Send, memqueue.Fault{Err: errDown})
		require.Equal(t, http.StatusInternalServerError, l.send(version, []item{a}).Code)
		for _, it := range []item{a, a, described("a", "counter", "second"), a} {
			l.ok(version, []item{it})
		}
		l.later.Store(int64(2 * time.Hour))
		l.ok(version, []item{a}) // decoded before the window is seen to end
		l.ok(version, []item{a})
		var got []int
		for _, m := range l.queue.Messages() {
			e, err := message.Parse(m.Body)
			require.NoError(t, err)
			b, err := e.Decode(remotewrite.NewGeneration(2), l.stage.acceptedLimits(), 1<<28)
			require.NoError(t, err)
			got = append(got, len(b.Metadata))
		}
		require.Equal(t, []int{1, 0, 1, 1, 0, 1}, got)
	})
}

// TestOldMessagesAreJudgedByTheirTime consumes a message long after its arrival. At its arrival,
// some of its samples were in the future, or too far in the future.
func TestOldMessagesAreJudgedByTheirTime(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		l := held(t)
		limit := someTime + DefaultSettings().Limits.CreationGracePeriod.Milliseconds()
		require.Equal(t, http.StatusBadRequest, l.send(version, []item{gauge("m", at(limit, 1), at(limit+1, 1))}).Code)
		l.later.Add(int64(24 * time.Hour))
		require.Empty(t, l.consume())
		require.Equal(t, want(t, version, []item{gauge("m", at(limit, 1))}), l.read(anonymous))
		require.InDelta(t, 1, l.discarded(remotewrite.ReasonFuture), 0, "counted once")
	})
}

// TestConsumeEqualsDirect sends random requests both ways: what is stored is the same.
func TestConsumeEqualsDirect(t *testing.T) {
	sent := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 77))
		direct, buffered := calmIn(t, Direct), calmIn(t, Buffered)
		buffered.stage.maxMessage = 384 + base64.StdEncoding.EncodedLen(100+rng.IntN(2000)) // a head and a small frame
		for range 5 {
			version, items := protocols[rng.IntN(2)], randomItems(rng)
			if rng.IntN(4) == 0 {
				items = append(items, everything()...)
			}
			b := buffered.send(version, items)
			if b.Code == http.StatusRequestEntityTooLarge { // one series does not fit
				continue
			}
			sent++
			d := direct.send(version, items)
			require.Equal(t, d.Code, b.Code)
			require.Equal(t, d.Body.String(), b.Body.String())
			require.Equal(t, d.Header(), b.Header())
			direct.tick()
			buffered.tick()
		}
		require.Equal(t, direct.read(anonymous), buffered.read(anonymous), "seed %d", seed)
	}
	require.Greater(t, sent, 120)
}

// TestOutageOfADay lets the store be away for a day. The queue delivers messages as often as that
// of the AWS stack: none becomes a dead letter but one that nobody can read, which does within
// hours.
func TestOutageOfADay(t *testing.T) {
	stack, err := os.ReadFile("../../infra/serverless.yml")
	require.NoError(t, err)
	receives, err := strconv.Atoi(regexp.MustCompile(`(?m)^    max-receives: (\d+)$`).FindStringSubmatch(string(stack))[1])
	require.NoError(t, err)
	l := held(t)
	dead := memqueue.New(memqueue.Settings{Now: l.now})
	l.queue = memqueue.New(memqueue.Settings{Now: l.now, MaxReceives: receives, DeadLetters: dead})
	l.stage.queue, l.stage.from = l.queue, l.queue
	l.ok(protocolV1, []item{gauge("m", at(someTime, 1))})
	require.NoError(t, l.queue.Send(t.Context(), queue.Message{Body: "nonsense"}))
	// pass lets time pass while consumers take whatever is visible, with a visibility timeout that
	// no message waits for.
	pass := func(d time.Duration, begin time.Time) {
		for ; l.now().Sub(begin) < d; l.later.Add(int64(time.Second)) {
			ms, err := l.queue.Receive(t.Context(), queue.MaxBatch, 0, d)
			require.NoError(t, err)
			failed, err := l.stage.Consume(t.Context(), ms)
			require.NoError(t, err)
			require.NoError(t, l.queue.Delete(t.Context(), slices.DeleteFunc(ms, func(m queue.Received) bool { return slices.Contains(failed, m.ID) })...))
		}
	}
	away := true
	for range receives {
		l.faults.Add(func(memstore.Call) bool { return away }, memstore.Fault{Err: errDown})
	}
	pass(time.Hour, l.now())
	require.Len(t, dead.Messages(), 1)
	require.Equal(t, "nonsense", dead.Messages()[0].Body)
	pass(23*time.Hour, l.now())
	require.Len(t, l.queue.Messages(), 1)
	require.Greater(t, l.queue.Messages()[0].Receives, 250, "it was tried all day")
	away = false
	pass(longestWait+time.Second, l.now())
	require.Empty(t, l.queue.Messages())
	require.Len(t, dead.Messages(), 1)
	require.Equal(t, want(t, protocolV1, []item{gauge("m", at(someTime, 1))}), l.read(anonymous))
}

// TestFailedMessagesReturnSoon gives what failed back at once, with a wait that doubles, whatever
// the visibility timeout of the queue is.
func TestFailedMessagesReturnSoon(t *testing.T) {
	l := held(t)
	l.stage.from = l.queue
	l.ok(protocolV1, []item{gauge("m", at(someTime, 1))})
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		l.faults.Add(func(memstore.Call) bool { return true }, memstore.Fault{Err: errDown})
		ms, err := l.queue.Receive(t.Context(), 1, 0, time.Hour)
		require.NoError(t, err)
		require.Len(t, ms, 1)
		failed, err := l.stage.Consume(t.Context(), ms)
		require.NoError(t, err)
		require.Equal(t, []string{ms[0].ID}, failed)
		l.later.Add(int64(wait - time.Millisecond))
		none, err := l.queue.Receive(t.Context(), 1, 0, time.Hour)
		require.NoError(t, err)
		require.Empty(t, none)
		l.later.Add(int64(time.Millisecond))
	}
}
