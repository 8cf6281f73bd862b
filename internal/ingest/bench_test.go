package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

// discardStore accepts every write and keeps nothing.
type discardStore struct{ bytes, puts atomic.Int64 }

func (s *discardStore) Put(_ context.Context, _ string, body io.ReadSeeker, _ objstore.Condition) (string, error) {
	n, err := io.Copy(io.Discard, body)
	s.bytes.Add(n)
	s.puts.Add(1)
	return "", err
}

func (s *discardStore) Get(context.Context, string, int64, int64) (io.ReadCloser, objstore.Object, error) {
	return nil, objstore.Object{}, objstore.ErrNotFound
}

func (s *discardStore) List(context.Context, string, string) iter.Seq2[objstore.Object, error] {
	return func(func(objstore.Object, error) bool) {}
}

func (s *discardStore) ListFolders(context.Context, string) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

func (s *discardStore) Delete(context.Context, string) error { return nil }

func (s *discardStore) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// requests returns bodies of remote_write 1.0 requests that together carry one sample of every
// series.
func requests(b *testing.B, hosts, perHost, batch int) [][]byte {
	var out [][]byte
	var cur prompb.WriteRequest
	flush := func() {
		raw, err := cur.Marshal()
		require.NoError(b, err)
		out = append(out, snappy.Encode(nil, raw))
		cur = prompb.WriteRequest{}
	}
	for h := range hosts {
		for i := range perHost {
			cur.Timeseries = append(cur.Timeseries, prompb.TimeSeries{
				Labels: []prompb.Label{
					{Name: "__name__", Value: fmt.Sprintf("node_metric_with_some_name_%d_total", i/8)},
					{Name: "cpu", Value: fmt.Sprint(i % 8)},
					{Name: "env", Value: "production"},
					{Name: "host_number", Value: fmt.Sprint(h)},
					{Name: "instance", Value: fmt.Sprintf("host_%d:9100", h)},
					{Name: "job", Value: "node_exporter"},
					{Name: "role", Value: []string{"db", "web", "cache"}[h%3]},
				},
				Samples: []prompb.Sample{{Value: float64(i) * 1.5, Timestamp: 1_700_000_000_000}},
			})
			if len(cur.Timeseries) == batch {
				flush()
			}
		}
	}
	return out
}

// BenchmarkWrite sends requests of 2,000 samples from 100k series through the whole stage, without
// HTTP and store.
func BenchmarkWrite(b *testing.B) {
	bodies := requests(b, 200, 500, 2000)
	for _, parallel := range []int{1, 8} {
		b.Run(fmt.Sprintf("senders=%d", parallel), func(b *testing.B) {
			set := DefaultSettings()
			set.FlushInterval = 1
			store := &discardStore{}
			s, err := New(set, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
			require.NoError(b, err)
			h := s.Handler()
			var n atomic.Int64
			b.SetParallelism(parallel)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					body := bodies[int(n.Add(1))%len(bodies)]
					r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(body))
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if w.Code != http.StatusNoContent {
						b.Errorf("status %d: %s", w.Code, w.Body)
					}
				}
			})
			b.StopTimer()
			samples := float64(n.Load()) * 2000
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/samples, "ns/sample")
			b.ReportMetric(float64(store.bytes.Load())/samples, "B/sample")
			b.ReportMetric(samples/float64(store.puts.Load()), "samples/put")
			require.NoError(b, s.Close(context.Background()))
		})
	}
}
