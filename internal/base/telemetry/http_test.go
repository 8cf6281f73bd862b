package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/telemetry"
)

func TestInstrumentCountsByHandlerMethodAndCode(t *testing.T) {
	reg := prometheus.NewRegistry()
	gauge := func() float64 {
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "promlake_http_requests_in_flight" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	h := telemetry.Instrument(reg)("/a", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, 1.0, gauge())
		_, ok := w.(http.Flusher)
		require.True(t, ok, "streaming needs a Flusher")
		w.WriteHeader(http.StatusTeapot)
	}))
	for _, method := range []string{"GET", "GET", "BREW"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/", nil))
	}
	require.Equal(t, 0.0, gauge())

	families, err := reg.Gather()
	require.NoError(t, err)
	got := map[string]uint64{}
	for _, f := range families {
		if f.GetName() != "promlake_http_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[strings.Join(labels, " ")] = m.GetHistogram().GetSampleCount()
		}
	}
	require.Equal(t, map[string]uint64{"418 /a get": 2, "418 /a unknown": 1}, got)
}

func TestInstrumentSharesOneRegistry(t *testing.T) {
	reg := prometheus.NewRegistry()
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, name := range []string{"/a", "/b"} {
		telemetry.Instrument(reg)(name, ok).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	n, err := testutil.GatherAndCount(reg, "promlake_http_request_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func TestInstrumentWithoutRegistry(t *testing.T) {
	rec := httptest.NewRecorder()
	h := telemetry.Instrument(nil)("/a", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	require.Equal(t, http.StatusTeapot, rec.Code)
}

func TestInstrumentPanicsOnConflictingMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "promlake_http_requests_in_flight", Help: "Another metric."}))
	require.Panics(t, func() { telemetry.Instrument(reg) })
}
