package senders

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

const exports = 3

var observed = []float64{0.003, 0.05, 0.05, 0.5, 1, 3, 3.5, 700}

// TestGoSDK: OpenTelemetry's SDK and exporter for Go write counters, classic and exponential
// histograms with exemplars in both temporalities, compressed or not. They are a program of the
// Collector's module, because their dependencies are not Promlake's.
func TestGoSDK(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sdk")
	_, err := os.ReadFile("../collector/sdk/main.go") // it is an input: go test keeps results until one changes
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../collector", "-buildvcs=false", "-o", program, "./sdk").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, compression := range []string{"", "-gzip"} {
		for _, temporality := range []string{"", "-delta"} {
			t.Run("flags="+compression+temporality, func(t *testing.T) { testGoSDK(t, program, compression, temporality) })
		}
	}
}

func testGoSDK(t *testing.T, program, compression, temporality string) {
	r := &receiver{}
	var err error
	r.store, err = filestore.New(t.TempDir())
	require.NoError(t, err)
	stage, err := ingest.New(ingest.DefaultSettings(), r.store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close(t.Context())) })
	handler := stage.OTLPHandler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		assert.Equal(t, strings.TrimPrefix(compression, "-"), req.Header.Get("Content-Encoding"))
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)

	args := slices.DeleteFunc([]string{compression, temporality, server.URL + "/v1/metrics", fmt.Sprint(exports)}, func(s string) bool { return s == "" })
	for _, v := range observed {
		args = append(args, fmt.Sprint(v))
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	var times map[string][]interval // of the points of each export, by instrument
	require.NoError(t, json.Unmarshal(out, &times))
	require.Len(t, times, 3)

	requireFloats(t, r, temporality == "-delta", times)
	requireHistograms(t, r, temporality == "-delta", times["payload"])
}

// interval has the start and the time of a point, ms.
type interval [2]int64

// requireFloats compares the samples of numbers and of the classic histogram, and the exemplars.
func requireFloats(t *testing.T, r *receiver, delta bool, times map[string][]interval) {
	t.Helper()
	var mark string
	if delta {
		mark = `__temporality__="delta", `
	}
	var want []string
	for i := range exports {
		n := 1.0
		if !delta {
			n = float64(i + 1)
		}
		add := func(name, labels string, v float64) {
			instrument, _, _ := strings.Cut(name, "_")
			at := times[instrument][i]
			want = append(want, fmt.Sprintf("{__name__=%q, %s%s} %d %d %x", name, mark, labels, at[0], at[1], math.Float64bits(v)))
		}
		add("requests_bytes_total", `code="200", job="shop"`, 5*n)
		sum := 0.0
		for range int(n) {
			for _, v := range observed {
				sum += v
			}
		}
		for le, count := range map[string]float64{"0.1": 3, "1": 5, "+Inf": 8} {
			add("duration_seconds_bucket", fmt.Sprintf("job=\"shop\", le=%q", le), count*n)
		}
		add("duration_seconds_count", `job="shop"`, 8*n)
		add("duration_seconds_sum", `job="shop"`, sum)
	}
	slices.Sort(want)
	stored, meta := r.stored(t)
	got := slices.DeleteFunc(slices.Clone(stored), func(s string) bool {
		return strings.Contains(s, "payload") || strings.Contains(s, "target_info") || strings.Contains(s, " exemplar ")
	})
	require.Equal(t, want, got)
	require.Contains(t, meta, segment.Metadata{Metric: "requests_bytes_total", Type: "counter", Help: "Bytes.", Unit: "bytes"})
	// The SDK keeps one of the observations of a classic bucket, and one for each native one.
	const span = `{span_id="0200000000000000", trace_id="01000000000000000000000000000000"}`
	for series, values := range map[string][]string{
		`{__name__="requests_bytes_total", ` + mark + `code="200", job="shop"}`:   {"5"},
		`{__name__="duration_seconds_bucket", ` + mark + `job="shop", le="0.1"}`:  {"0.003", "0.05"},
		`{__name__="duration_seconds_bucket", ` + mark + `job="shop", le="1"}`:    {"0.5", "1"},
		`{__name__="duration_seconds_bucket", ` + mark + `job="shop", le="+Inf"}`: {"3", "3.5", "700"},
		`{__name__="payload", ` + mark + `job="shop"}`:                            {"0.003", "0.05", "0.5", "1", "3", "3.5", "700"},
	} {
		n := 0
		for _, s := range stored {
			if rest, ok := strings.CutPrefix(s, series+" exemplar "); ok {
				n++
				fields := strings.SplitN(rest, " ", 3)
				require.Contains(t, values, fields[1], s)
				require.Equal(t, span, fields[2])
			}
		}
		require.GreaterOrEqual(t, n, exports, "%d exemplars of %s", n, series)
	}
}

// requireHistograms compares the buckets of the native histograms with the observations.
func requireHistograms(t *testing.T, r *receiver, delta bool, times []interval) {
	t.Helper()
	var got []interval
	for o, err := range r.store.List(t.Context(), key.SegmentsPrefix(tenant.Default), "") {
		require.NoError(t, err)
		for _, row := range r.rows(t, o.Key) {
			for _, s := range row.Hists {
				require.Equal(t, "payload", row.Labels.Get("__name__"))
				n := 1
				if !delta {
					n = slices.Index(times, interval{s.ST, s.T}) + 1
				}
				require.Equal(t, counts(n), buckets(s.H))
				require.Equal(t, int32(3), s.H.Schema)
				require.Equal(t, uint64(n*len(observed)), s.H.Count)
				require.Equal(t, delta, s.H.CounterResetHint == histogram.GaugeType)
				got = append(got, interval{s.ST, s.T})
			}
		}
	}
	require.ElementsMatch(t, times, got)
}

// counts returns how many of n times the observations lie in each bucket of schema 3, by its upper
// bound.
func counts(n int) map[string]int {
	out := map[string]int{}
	for _, v := range observed {
		out[bound(math.Exp2(math.Ceil(math.Log2(v)*8)/8))] += n
	}
	return out
}

func buckets(h *histogram.Histogram) map[string]int {
	out := map[string]int{}
	for it := h.PositiveBucketIterator(); it.Next(); {
		if b := it.At(); b.Count > 0 {
			out[bound(b.Upper)] = int(b.Count)
		}
	}
	return out
}

func bound(v float64) string { return fmt.Sprintf("%.6g", v) }
