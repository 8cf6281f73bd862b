package order

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/ingest/message"
	"github.com/promlake/promlake/internal/query/admin"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/memstore"
)

// lake is a store with writers, a client that deletes, and a compactor. The store and the queue
// have the time of the bubble.
type lake struct {
	t     *testing.T
	store *memstore.Store
	queue *memqueue.Queue
	admin http.Handler
	mode  ingest.Mode

	deletionDelay time.Duration // 0 is the default
}

func newLake(t *testing.T, mode ingest.Mode) *lake {
	l := &lake{t: t, store: memstore.New(memstore.Settings{}), queue: memqueue.New(memqueue.Settings{}), mode: mode}
	l.admin = admin.New(admin.Settings{Enabled: true, Queued: mode == ingest.Buffered}, l.store, nil, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	return l
}

// clock returns a machine clock that is ahead of the true time.
func clock(ahead *time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(*ahead) }
}

// writer starts an ingest stage whose clock is off.
func (l *lake) writer(ahead *time.Duration) *ingest.Stage {
	set := ingest.DefaultSettings()
	set.Mode, set.QueueURL = l.mode, "queue"
	// the limits of samples' times are not under test
	set.Limits.CreationGracePeriod = 100 * time.Hour
	s, err := ingest.New(set, l.store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), clock(ahead), ingest.To(l.queue))
	require.NoError(l.t, err)
	l.t.Cleanup(func() { require.NoError(l.t, s.Close(context.Background())) })
	return s
}

// write sends a sample, and returns when it is acknowledged.
func (l *lake) write(s *ingest.Stage, at time.Time, v float64) {
	l.t.Helper()
	req := prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: "m"}},
		Samples: []prompb.Sample{{Timestamp: at.UnixMilli(), Value: v}},
	}}}
	body, err := req.Marshal()
	require.NoError(l.t, err)
	r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(snappy.Encode(nil, body)))
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	require.Equal(l.t, http.StatusNoContent, w.Code, w.Body)
}

// remove deletes everything from a time on, without an end if until is zero. It returns when the
// deletion is acknowledged.
func (l *lake) remove(from, until time.Time) {
	l.t.Helper()
	q := url.Values{"match[]": {"m"}, "start": {fmt.Sprint(from.Unix())}}
	if !until.IsZero() {
		q.Set("end", fmt.Sprint(until.Unix()))
	}
	w := httptest.NewRecorder()
	l.admin.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/admin/tsdb/delete_series?"+q.Encode(), nil))
	require.Equal(l.t, http.StatusNoContent, w.Code, w.Body)
}

// receive receives all messages of the queue.
func (l *lake) receive() (ds []queue.Received) {
	for {
		ms, err := l.queue.Receive(l.t.Context(), queue.MaxBatch, 0, time.Hour)
		require.NoError(l.t, err)
		if len(ms) == 0 {
			return ds
		}
		for _, m := range ms {
			ds = append(ds, queue.Received{ID: m.ID, Body: m.Body, Sent: m.Sent})
		}
		require.NoError(l.t, l.queue.Delete(l.t.Context(), ms...))
	}
}

// consume writes messages to segments.
func (l *lake) consume(s *ingest.Stage, ds []queue.Received) {
	l.t.Helper()
	if l.mode != ingest.Buffered {
		return
	}
	failed, err := s.Consume(l.t.Context(), ds)
	require.NoError(l.t, err)
	require.Empty(l.t, failed)
}

// compact runs cycles of a compactor whose clock is off.
func (l *lake) compact(ahead time.Duration) {
	l.t.Helper()
	set := compact.Settings{Policy: plan.Policy{MinPartSegments: 2, MaxSources: 2, MaxSegments: 2}, DeletionDelay: l.deletionDelay, TempDir: l.t.TempDir()}
	s, err := compact.New(set, l.store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), clock(&ahead))
	require.NoError(l.t, err)
	require.NoError(l.t, s.UntilIdle(l.t.Context(), nil, nil))
}

// values returns the values that a reader sees, by time.
func (l *lake) values() map[int64]float64 {
	l.t.Helper()
	a, err := compacttest.Read(l.t.Context(), l.store, tenant.Default)
	require.NoError(l.t, err)
	out := map[int64]float64{}
	for _, samples := range a.Samples {
		for ts, s := range samples {
			out[ts] = math.Float64frombits(s.Bits)
		}
	}
	return out
}

// TestOrder runs every scenario in every ingest mode, with clocks that are right, ahead and behind.
// All share one synctest bubble, because decoders that the whole program shares hold channels,
// which cannot be used in another bubble.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		for _, mode := range []ingest.Mode{ingest.Grouped, ingest.Direct, ingest.Buffered} {
			for _, ahead := range []time.Duration{0, 45 * time.Second, -20 * time.Second, 65 * time.Minute, -65 * time.Minute} {
				for _, scenario := range []func(*testing.T, *lake, time.Duration){writesAfterADeletion, deletionOfTheFuture, theLastWriteCounts} {
					t.Logf("mode %s, a clock %s ahead", mode, ahead)
					scenario(t, newLake(t, mode), ahead)
				}
			}
		}
		for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
			t.Logf("a clock that steps back from %s ahead", ahead)
			writesWithinATick(t, newLake(t, ingest.Direct), ahead)
		}
		lateArrival(t, newLake(t, ingest.Grouped))
		for _, redriven := range []bool{false, true} {
			t.Logf("redelivery, moved back from the dead letters: %t", redriven)
			redelivery(t, newLake(t, ingest.Buffered), redriven)
		}
	})
}

// writesAfterADeletion: a compactor with a wrong clock commits, and then a client deletes without
// an end. Writes after that remain, a second and some seconds later, including the same bytes that
// were written before.
func writesAfterADeletion(t *testing.T, l *lake, ahead time.Duration) {
	right, begin := time.Duration(0), time.Now()
	s := l.writer(&right)
	l.write(s, begin, 1)
	l.write(s, begin.Add(time.Second), 1)
	l.consume(s, l.receive())
	time.Sleep(3 * time.Minute)
	l.compact(ahead)
	l.remove(begin.Add(-time.Hour), time.Time{})
	require.Empty(t, l.values())
	want := map[int64]float64{}
	for i, pause := range []time.Duration{0, time.Second, 5 * time.Second, time.Minute} {
		time.Sleep(pause)
		at := begin.Add(time.Duration(i) * time.Second)
		l.write(s, at, 1) // the first two unchanged
		want[at.UnixMilli()] = 1
		l.consume(s, l.receive())
		require.Equal(t, want, l.values(), "%s after the deletion", pause)
	}
	for range 3 {
		time.Sleep(3 * time.Hour)
		l.compact(ahead)
		require.Equal(t, want, l.values())
	}
}

// deletionOfTheFuture: a writer's clock is wrong, or jumps, when it writes. A deletion after the
// write deletes it for good.
func deletionOfTheFuture(t *testing.T, l *lake, ahead time.Duration) {
	clock, begin := ahead, time.Now()
	s := l.writer(&clock)
	l.write(s, begin, 1)
	clock = 0
	l.write(s, begin.Add(time.Second), 2)
	l.consume(s, l.receive())
	l.remove(begin.Add(-time.Hour), time.Time{})
	require.Empty(t, l.values())
	for range 4 {
		time.Sleep(3 * time.Hour)
		l.compact(0)
		require.Empty(t, l.values())
	}
}

// theLastWriteCounts: of two values at the same time, the one that was acknowledged last counts,
// whatever the clocks of their writers show.
func theLastWriteCounts(t *testing.T, l *lake, ahead time.Duration) {
	right, begin := time.Duration(0), time.Now()
	first, second := l.writer(&ahead), l.writer(&right)
	l.write(first, begin, 1)
	l.consume(first, l.receive())
	time.Sleep(time.Minute)
	l.write(second, begin, 2)
	l.consume(second, l.receive())
	for range 3 {
		require.Equal(t, map[int64]float64{begin.UnixMilli(): 2}, l.values())
		time.Sleep(3 * time.Hour)
		l.compact(ahead)
	}
}

// writesWithinATick: a writer whose clock goes back, so that all its writes have the same time,
// writes several values at one time faster than the store's clock ticks. The last one counts,
// however merges divide the segments.
func writesWithinATick(t *testing.T, l *lake, ahead time.Duration) {
	const n = 5
	for first := range 3 {
		begin := time.Now().Truncate(2 * time.Hour)
		l.store = memstore.New(memstore.Settings{Resolution: time.Second})
		clock := ahead
		s := l.writer(&clock)
		l.write(s, begin.Add(time.Minute), 0)
		clock -= time.Hour
		for i := range first {
			l.write(s, begin.Add(time.Duration(i+2)*time.Minute), 0)
		}
		for v := range n {
			l.write(s, begin, float64(v))
			require.Equal(t, float64(v), l.values()[begin.UnixMilli()], "before the merges")
		}
		for range 3 {
			time.Sleep(3 * time.Hour)
			l.compact(0)
			require.Equal(t, float64(n-1), l.values()[begin.UnixMilli()], "merged")
		}
	}
}

// redelivery: a message is delivered again after a deletion, from the queue and from the dead
// letters. Deleted samples stay deleted, and an older value does not replace a newer one. A message
// that was sent after the deletion remains, although it is consumed together with the others.
func redelivery(t *testing.T, l *lake, redriven bool) {
	right, begin := time.Duration(0), time.Now()
	s := l.writer(&right)
	l.write(s, begin, 1)
	l.write(s, begin.Add(time.Second), 1)
	old := l.receive()
	l.consume(s, old)
	l.write(s, begin.Add(time.Hour), 1) // on the queue during the deletion
	l.remove(begin, begin.Add(2*time.Hour))
	l.write(s, begin.Add(time.Second), 2)
	l.write(s, begin.Add(time.Hour+time.Second), 2)
	want := map[int64]float64{begin.Add(time.Second).UnixMilli(): 2, begin.Add(time.Hour + time.Second).UnixMilli(): 2}
	l.consume(s, l.receive())
	require.Equal(t, want, l.values())
	for _, pause := range []time.Duration{time.Second, time.Minute, 5 * time.Hour, 13 * 24 * time.Hour} {
		time.Sleep(pause)
		again := make([]queue.Received, len(old))
		copy(again, old)
		for i := range again {
			if redriven {
				body, err := message.Redriven(old[i].Body, old[i].Sent)
				require.NoError(t, err)
				again[i].Body, again[i].Sent = body, time.Now()
			}
		}
		l.consume(s, again)
		require.Equal(t, want, l.values(), "%s later", pause)
		l.compact(0)
		require.Equal(t, want, l.values(), "%s later, compacted", pause)
	}
}
