package ingest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/wire"
)

// keepingQueue keeps the messages of the last Send.
type keepingQueue struct{ last []queue.Message }

func (q *keepingQueue) Send(_ context.Context, ms ...queue.Message) error {
	q.last = ms
	return nil
}

// fleetSeries is the number of series of BenchmarkModes, and scrapes the number of scrapes of each
// before the requests repeat.
const fleetSeries, scrapes = 20_000, 10

// realBodies returns requests of samples samples each with the labels and values of real
// node_exporters: several scrapes of a fleet, 15 s apart.
func realBodies(b *testing.B, version wire.Version, samples int) [][]byte {
	c, err := capture.Open("")
	require.NoError(b, err)
	f, err := fleet.New(c, fleetSeries/len(c.Series)+1)
	require.NoError(b, err)
	var templates []*wire.Template
	for first := 0; first < fleetSeries; first += samples {
		series := make([]wire.Series, samples)
		for i := range series {
			series[i] = wire.Series{Labels: f.Labels(first + i), Counter: f.Counter(first + i)}
		}
		t, err := wire.New(version, series)
		require.NoError(b, err)
		templates = append(templates, t)
	}
	var out [][]byte
	values := make([]float64, samples)
	for round := range scrapes {
		at := time.Now().UnixMilli() - int64(scrapes-round)*15_000
		for i, t := range templates {
			f.Values(values, i*samples, round, at)
			out = append(out, snappy.Encode(nil, t.Append(nil, at, values)))
		}
	}
	return out
}

// cpu is the processor time (seconds) that this process has used.
func cpu() float64 {
	var u syscall.Rusage
	// It fails only for another address or another process.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// BenchmarkModes sends real requests through the stage in each mode, one after another, without
// HTTP, store and queue. The consumer receives ten messages at a time.
func BenchmarkModes(b *testing.B) {
	for _, mode := range modes {
		for _, version := range []wire.Version{wire.V1, wire.V2} {
			for _, samples := range []int{2000, 10_000} {
				b.Run(fmt.Sprintf("mode=%s/protocol=%d/samples=%d", mode, version, samples), func(b *testing.B) {
					benchmarkMode(b, mode, version, samples)
				})
			}
		}
	}
}

func benchmarkMode(b *testing.B, mode Mode, version wire.Version, samples int) {
	bodies := realBodies(b, version, samples)
	set := quick()
	set.Mode, set.QueueURL = mode, "memory"
	store, q := &discardStore{}, &keepingQueue{}
	newStage := func() *Stage {
		s, err := New(set, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now, To(q))
		require.NoError(b, err)
		return s
	}
	front, back := newStage(), newStage()
	h := front.Handler()
	var batch []queue.Received
	var frontCPU, backCPU float64
	queued, chunks, n, consumed := 0, 0, 0, 0
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(bodies[n%len(bodies)]))
		if version == wire.V2 {
			r.Header.Set("Content-Type", contentV2)
		}
		w := httptest.NewRecorder()
		at := cpu()
		h.ServeHTTP(w, r)
		frontCPU += cpu() - at
		require.Equal(b, http.StatusNoContent, w.Code, w.Body)
		n++
		for _, m := range q.last {
			queued += len(m.Body)
			chunks += queue.Chunks(len(m.Body))
			batch = append(batch, queue.Received{ID: fmt.Sprint(n), Body: m.Body, Sent: time.Now()})
		}
		if len(batch) >= 10 {
			at := cpu()
			failed, err := back.Consume(context.Background(), batch)
			backCPU += cpu() - at
			require.NoError(b, err)
			require.Empty(b, failed)
			consumed, batch = consumed+len(batch), nil
		}
	}
	millions := float64(n) * float64(samples) / 1e6
	b.ReportMetric(frontCPU/millions, "CPU-s/M")
	if mode == Buffered && consumed > 0 {
		b.ReportMetric(backCPU/(float64(consumed)*float64(samples)/1e6), "consumer-CPU-s/M")
		b.ReportMetric(float64(queued)/millions/1e6, "queue-B/sample")
		b.ReportMetric(float64(chunks)/float64(n), "chunks/request")
	}
	b.ReportMetric(float64(store.bytes.Load())/millions/1e6, "B/sample")
	require.NoError(b, front.Close(context.Background()))
	require.NoError(b, back.Close(context.Background()))
}
