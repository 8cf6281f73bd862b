package senders

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// receiver is an ingest stage behind HTTP that records the kinds of messages.
type receiver struct {
	*httptest.Server
	store *filestore.Store

	mu    sync.Mutex
	types map[string]int // by content type
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	store, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	stage, err := ingest.New(ingest.DefaultSettings(), store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	r := &receiver{store: store, types: map[string]int{}}
	h := stage.Handler()
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.types[req.Header.Get("Content-Type")]++
		r.mu.Unlock()
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		r.Close()
		require.NoError(t, stage.Close(t.Context()))
	})
	return r
}

// stored returns the content of the segments, each item as text, sorted and without duplicates,
// because senders may send twice.
func (r *receiver) stored(t *testing.T) (samples []string, meta []segment.Metadata) {
	t.Helper()
	for o, err := range r.store.List(t.Context(), key.SegmentsPrefix(tenant.Default), "") {
		require.NoError(t, err)
		for _, row := range r.rows(t, o.Key) {
			for _, f := range row.Floats {
				samples = append(samples, floatText(row.Labels, f.ST, f.T, f.V))
			}
			for _, h := range row.Hists {
				samples = append(samples, histText(row.Labels, h.ST, h.T, h.H, h.FH))
			}
			for _, e := range row.Exemplars {
				samples = append(samples, exemplarText(row.Labels, e))
			}
		}
		file, err := os.ReadFile(r.store.LocalPath(o.Key))
		require.NoError(t, err)
		info, err := segment.ReadInfo(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		meta = append(meta, info.Metadata...)
	}
	slices.Sort(samples)
	return slices.Compact(samples), meta
}

// rows returns the rows of a segment.
func (r *receiver) rows(t *testing.T, name string) []segment.Row {
	t.Helper()
	file, err := os.ReadFile(r.store.LocalPath(name))
	require.NoError(t, err)
	rows, err := segmenttest.Rows(file)
	require.NoError(t, err)
	return rows
}

func floatText(l labels.Labels, st, t int64, v float64) string {
	return fmt.Sprintf("%s %d %d %x", l, st, t, math.Float64bits(v))
}

func histText(l labels.Labels, st, t int64, h *histogram.Histogram, fh *histogram.FloatHistogram) string {
	if fh != nil {
		return fmt.Sprintf("%s %d %d float %s", l, st, t, fh)
	}
	return fmt.Sprintf("%s %d %d %s", l, st, t, h)
}

func exemplarText(l labels.Labels, e exemplar.Exemplar) string {
	return fmt.Sprintf("%s exemplar %d %g %s", l, e.Ts, e.Value, e.Labels)
}

// TestPrometheusClient: upstream's TSDB, write-ahead-log watcher and queue manager send everything
// that they support, in both protocol versions.
func TestPrometheusClient(t *testing.T) {
	for _, version := range []remoteapi.WriteMessageType{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType} {
		t.Run(string(version), func(t *testing.T) {
			r := newReceiver(t)
			want, notify := send(t, r.URL, version)
			var got []string
			var meta []segment.Metadata
			for end := time.Now().Add(5 * time.Minute); len(got) < len(want) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				notify()
				got, meta = r.stored(t)
			}
			require.Equal(t, want, got)
			r.mu.Lock()
			defer r.mu.Unlock()
			if version == remoteapi.WriteV2MessageType {
				require.Contains(t, meta, segment.Metadata{Metric: "requests_total", Type: "counter", Help: "Requests.", Unit: "requests"})
				require.Equal(t, []string{"application/x-protobuf;proto=io.prometheus.write.v2.Request"}, keys(r.types))
			} else {
				require.Equal(t, []string{"application/x-protobuf"}, keys(r.types))
			}
		})
	}
}

func keys(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// send appends to a TSDB whose log a remote-write client follows. It returns the expected items,
// and a function that makes the client read the log (which it does every 15 s otherwise).
func send(t *testing.T, to string, version remoteapi.WriteMessageType) (want []string, notify func()) {
	t.Helper()
	dir := t.TempDir()
	opts := tsdb.DefaultOptions()
	opts.EnableExemplarStorage, opts.MaxExemplars = true, 100
	opts.EnableMetadataWALRecords = true
	opts.EnableSTStorage = true
	opts.FloatChunkEncoding = chunkenc.EncXOR2
	opts.EnableHistogramSTEncoding = true
	db, err := tsdb.Open(dir, nil, nil, opts, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	client := remote.NewStorage(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), func() (int64, error) { return 0, nil }, dir, time.Minute, nil, false)
	require.NoError(t, client.ApplyConfig(remoteConfig(t, to, version)))
	t.Cleanup(func() { require.NoError(t, client.Close()) })

	// The watcher sends only samples newer than its own start, which a busy machine may delay.
	begin := time.Now().Add(5 * time.Minute).UnixMilli()
	app := db.AppenderV2(t.Context())
	add := func(l labels.Labels, st, ts int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options) {
		_, err := app.Append(0, l, st, ts, v, h, fh, o)
		require.NoError(t, err)
		if version == remoteapi.WriteV1MessageType {
			st = 0 // 1.0 does not carry it
		}
		if h != nil || fh != nil {
			want = append(want, histText(l, st, ts, h, fh))
		} else {
			want = append(want, floatText(l, st, ts, v))
		}
		for _, e := range o.Exemplars {
			want = append(want, exemplarText(l, e))
		}
	}
	counter := labels.FromStrings("__name__", "requests_total", "job", "api")
	md := metadata.Metadata{Type: model.MetricTypeCounter, Help: "Requests.", Unit: "requests"}
	e := exemplar.Exemplar{Labels: labels.FromStrings("trace_id", "abc"), Value: 2, Ts: begin + 1, HasTs: true}
	add(counter, begin-1000, begin, 1, nil, nil, storage.AppendV2Options{Metadata: md})
	add(counter, begin-1000, begin+1, 2, nil, nil, storage.AppendV2Options{Metadata: md, Exemplars: []exemplar.Exemplar{e}})
	add(counter, 0, begin+2, math.Float64frombits(value.StaleNaN), nil, nil, storage.AppendV2Options{Metadata: md})
	for i := range 50 {
		add(labels.FromStrings("__name__", "temperature", "ünï", fmt.Sprint(i)), 0, begin+3, float64(i)/3, nil, nil, storage.AppendV2Options{})
	}
	add(labels.FromStrings("__name__", "native"), 0, begin, 0, tsdbutil.GenerateTestHistogram(3), nil, storage.AppendV2Options{})
	add(labels.FromStrings("__name__", "native_float"), 0, begin, 0, nil, tsdbutil.GenerateTestFloatHistogram(4), storage.AppendV2Options{})
	if version == remoteapi.WriteV2MessageType { // the client sends no custom buckets in 1.0
		add(labels.FromStrings("__name__", "custom"), 0, begin, 0, tsdbutil.GenerateTestCustomBucketsHistogram(5), nil, storage.AppendV2Options{})
	}
	require.NoError(t, app.Commit())
	slices.Sort(want)
	return want, client.Notify
}

func remoteConfig(t *testing.T, to string, version remoteapi.WriteMessageType) *config.Config {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	rw := config.DefaultRemoteWriteConfig
	rw.Name, rw.URL, rw.ProtobufMessage = "promlake", &commonconfig.URL{URL: u}, version
	rw.SendExemplars, rw.SendNativeHistograms = true, true
	rw.MetadataConfig.Send = false // 1.0 needs a scrape manager, which this test lacks
	rw.QueueConfig.BatchSendDeadline = model.Duration(50 * time.Millisecond)
	return &config.Config{GlobalConfig: config.DefaultGlobalConfig, RemoteWriteConfigs: []*config.RemoteWriteConfig{&rw}}
}
