package ingest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/ingest/quota"
	"github.com/promlake/promlake/internal/store/objstore"
)

// governed is a lake whose tenants have the limits of a document. set replaces the document and
// passes the time after which it counts.
func governed(t *testing.T, mode Mode, document string) (l *lake, set func(string)) {
	t.Helper()
	settings := quick()
	settings.Runtime.File = filepath.Join(t.TempDir(), "runtime.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(settings.Runtime.File, []byte(text), 0o600)) }
	write(document)
	l = calmWith(t, mode, settings)
	return l, func(text string) {
		write(text)
		l.later.Add(int64(settings.Runtime.Period))
	}
}

// team is the header of requests of tenant team.
var team = []string{"X-Scope-OrgID", "team"}

// refused is the audit of a tenant.
func (l *lake) refused(id string) []quota.Refusal {
	l.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/api/v1/status/refused", http.NoBody)
	r.Header.Set("X-Scope-OrgID", id)
	w := httptest.NewRecorder()
	l.stage.RefusedHandler().ServeHTTP(w, r)
	require.Equal(l.t, http.StatusOK, w.Code, w.Body)
	var out struct {
		Status string
		Data   []quota.Refusal
	}
	require.NoError(l.t, json.Unmarshal(w.Body.Bytes(), &out))
	require.Equal(l.t, "success", out.Status)
	require.NotNil(l.t, out.Data)
	return out.Data
}

// inModes runs a test in every mode.
func inModes(t *testing.T, run func(t *testing.T, mode Mode)) {
	for _, mode := range modes {
		t.Run("mode="+string(mode), func(t *testing.T) { run(t, mode) })
	}
}

// TestLimitsOfATenant: a tenant's limits are checked instead of the defaults, in every mode; those
// of others are not touched, and a changed document counts for series that are known already.
func TestLimitsOfATenant(t *testing.T) {
	inModes(t, func(t *testing.T, mode Mode) {
		l, set := governed(t, mode, "overrides: {team: {max_label_names_per_series: 2, max_label_value_length: 5000, past_grace_period: 1h, creation_grace_period: 1h}}")
		two := item{Lset: []string{"__name__", "m", "a", long(5000)}, Floats: []segment.Float{at(someTime+3_600_000, 1)}}
		three := item{Lset: []string{"__name__", "m", "a", "1", "b", "2"}, Floats: []segment.Float{at(someTime, 1)}}
		for _, version := range protocols {
			l.ok(version, []item{two}, team...)
			w := l.send(version, []item{three}, team...)
			require.Equal(t, http.StatusBadRequest, w.Code)
			require.Contains(t, w.Body.String(), "more label names than the limit of 2 (max_label_names_per_series); it is set by max_label_names_per_series of the tenant, or --validation.max-label-names-per-series")
			w = l.send(version, []item{gauge("old", at(someTime-3_600_001, 1), at(someTime-3_600_000, 2))}, team...)
			require.Equal(t, http.StatusBadRequest, w.Code)
			require.Contains(t, w.Body.String(), fmt.Sprintf("timestamp %d ms is too far in the past: the limit is now %d ms (too_far_in_past)", int64(someTime)-3_600_001, int64(someTime)-3_600_000))
			l.ok(version, []item{three, gauge("old", at(1, 1))})
			require.Equal(t, http.StatusBadRequest, l.send(version, []item{two}).Code, "the default")
		}
		require.Equal(t, want(t, protocolV1, []item{two, gauge("old", at(someTime-3_600_000, 2))}), l.read("team"))

		set("overrides: {team: {max_label_names_per_series: 1, creation_grace_period: 2h}}")
		require.Equal(t, http.StatusBadRequest, l.send(protocolV1, []item{two}, team...).Code)
		set("")
		two.Floats = []segment.Float{at(someTime, 1)}
		require.Contains(t, l.send(protocolV1, []item{two}, team...).Body.String(), "longer than the limit of 2048 bytes")
		set("overrides: {team: {max_label_names_per_series: -5}}")
		l.ok(protocolV1, []item{three}, team...)
	})
}

// TestRates: too much at once is asked again, what never fits is not.
func TestRates(t *testing.T) {
	inModes(t, func(t *testing.T, mode Mode) {
		l, set := governed(t, mode, "overrides: {team: {ingestion_rate: 2, ingestion_burst_size: 4}}")
		three := gauge("m", at(someTime, 1), at(someTime+1, 2), at(someTime+2, 3))
		l.ok(protocolV1, []item{three}, team...)
		w := l.send(protocolV2, []item{three}, team...)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), "too many samples: the limit is 2 a second and 4 at once (ingestion_rate of the tenant, or --distributor.ingestion-rate-limit); try again in 1s")
		require.Equal(t, []string{"0", "0", "0"}, writtenHeaders(w.Header()))
		l.ok(protocolV2, []item{three}) // of another tenant
		l.later.Add(int64(time.Second))
		l.ok(protocolV2, []item{three}, team...)
		w = l.send(protocolV1, []item{three, gauge("n", at(someTime, 1), at(someTime+1, 2))}, team...)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, w.Body.String(), "5 samples in one request, the limit is 4 (ingestion_burst_size of the tenant")
		require.Equal(t, want(t, protocolV1, []item{three}), l.read("team"))
		require.InDelta(t, 8, l.discarded(remotewrite.ReasonRate), 0)
		require.InDelta(t, 2, testutil.ToFloat64(l.stage.met.limited.WithLabelValues("ingestion_rate")), 0)
		require.Zero(t, l.inflight())

		set("overrides: {team: {request_rate: 0.1, request_burst_size: 1}}")
		l.ok(protocolV1, []item{three}, team...)
		w = l.send(protocolV1, []item{three}, team...)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "10", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), "too many write requests: the limit is 0.1 a second and 1 at once (request_rate of the tenant")
		got := l.refused("team")
		require.Len(t, got, 3)
		require.Equal(t, quota.Refusal{Time: l.now(), Reason: "rate_limited", Samples: 0, Error: strings.TrimSpace(w.Body.String())}, inUTC(got[0], l))
		require.Equal(t, []int{0, 5, 3}, []int{got[0].Samples, got[1].Samples, got[2].Samples})
		require.Empty(t, l.refused(anonymous))
	})
}

// TestRateOfBytes: the bytes of bodies count after decompression, in every protocol, and a body
// beyond the rate is not decoded.
func TestRateOfBytes(t *testing.T) {
	inModes(t, func(t *testing.T, mode Mode) {
		l, _ := governed(t, mode, "overrides: {team: {ingestion_bytes_rate: 100, ingestion_bytes_burst_size: 1000}}")
		line := fmt.Sprintf("m{a=%q} 1 %d\n", long(800), int64(someTime))
		require.Equal(t, http.StatusNoContent, l.text("/", line, team...).Code)
		sent := item{Lset: []string{"__name__", "n", "a", long(600)}, Floats: []segment.Float{at(someTime, 1)}}
		for _, version := range protocols {
			w := l.send(version, []item{sent}, team...)
			require.Equal(t, http.StatusTooManyRequests, w.Code)
			require.Contains(t, w.Body.String(), "too many bytes: the limit is 100 a second and 1000 at once (ingestion_bytes_rate of the tenant, or --distributor.ingestion-bytes-rate-limit); try again in ")
			require.NotEqual(t, "1", w.Header().Get("Retry-After"))
		}
		l.ok(protocolV1, []item{sent}) // of another tenant
		w := l.text("/", line+line, team...)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, w.Body.String(), "bytes in one request, the limit is 1000 (ingestion_bytes_burst_size of the tenant")
		l.later.Add(int64(10 * time.Second))
		l.ok(protocolV2, []item{sent}, team...)
		require.InDelta(t, 3, testutil.ToFloat64(l.stage.met.limited.WithLabelValues("ingestion_bytes_rate")), 0)
		require.Len(t, l.refused("team"), 3)
		require.Zero(t, l.inflight())
	})
}

// inUTC gives a refusal's time the location of the lake's clock.
func inUTC(r quota.Refusal, l *lake) quota.Refusal {
	r.Time = r.Time.In(l.now().Location())
	return r
}

// TestRateOfAppends: what scrapes and rules write is asked again by the spool.
func TestRateOfAppends(t *testing.T) {
	l, _ := governed(t, Grouped, "overrides: {team: {ingestion_rate: 1, ingestion_burst_size: 1}}")
	source := func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		return remotewrite.Decode(protocolV1, encode(t, protocolV1, []item{gauge("m", at(someTime, 1))}), g, rules, room)
	}
	refused, err := l.stage.Append(t.Context(), "team", 1000, source)
	require.NoError(t, err)
	require.NoError(t, refused)
	refused, err = l.stage.Append(t.Context(), "team", 1000, source)
	require.NoError(t, refused)
	require.ErrorContains(t, err, "try again in 1s")

	// Beyond the burst, they wait for all of it.
	l, _ = governed(t, Grouped, "overrides: {team: {ingestion_rate: 1, ingestion_burst_size: 2}}")
	many := func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		return remotewrite.Decode(protocolV1, encode(t, protocolV1, []item{gauge("m", at(someTime, 1), at(someTime+1, 2), at(someTime+2, 3))}), g, rules, room)
	}
	_, err = l.stage.Append(t.Context(), "team", 1000, many)
	require.NoError(t, err)
	_, err = l.stage.Append(t.Context(), "team", 1000, many)
	require.ErrorContains(t, err, "try again in 2s")
	l.later.Add(int64(2 * time.Second))
	_, err = l.stage.Append(t.Context(), "team", 1000, many)
	require.NoError(t, err)
}

// TestRelabel: each protocol passes the rules of its tenant, for new series and known ones.
func TestRelabel(t *testing.T) {
	const document = `
overrides:
  team:
    metric_relabel_configs:
      - {source_labels: [__name__], regex: debug_.*, action: drop}
      - {regex: pod, action: labeldrop}
      - {source_labels: [__name__], regex: old_(.*), target_label: __name__, replacement: new_$1}
      - {target_label: added, replacement: "yes"}
`
	inModes(t, func(t *testing.T, mode Mode) {
		l, set := governed(t, mode, document)
		sent := func(v float64) []item {
			return []item{
				{Lset: []string{"__name__", "debug_x", "pod", "1"}, Floats: []segment.Float{at(someTime, v)}, Exemplars: everything()[0].Exemplars},
				{Lset: []string{"__name__", "old_m", "pod", "1", "z", "1"}, Floats: []segment.Float{at(someTime, v)}},
				{Lset: []string{"__name__", "n", "pod", "2"}, Floats: []segment.Float{at(someTime, v)}},
			}
		}
		for v, version := range []protocol{protocolV1, protocolV2, protocolV1, protocolV2} {
			w := l.ok(version, sent(float64(v)), team...)
			if version == protocolV2 {
				require.Equal(t, "2", writtenHeaders(w.Header())[0])
			}
			l.tick()
		}
		stored := []item{
			{Lset: []string{"__name__", "new_m", "added", "yes", "z", "1"}, Floats: []segment.Float{at(someTime, 3)}},
			{Lset: []string{"__name__", "n", "added", "yes"}, Floats: []segment.Float{at(someTime, 3)}},
		}
		require.Equal(t, want(t, protocolV1, stored), l.read("team"))
		require.InDelta(t, 4, l.discarded(remotewrite.ReasonRelabel), 0)
		require.InDelta(t, 4, testutil.ToFloat64(l.stage.met.refused.WithLabelValues("team", "relabel_configuration")), 0)
		require.Empty(t, l.refused("team"), "what a rule drops is no violation")

		for range 2 {
			w := l.text("/", fmt.Sprintf("debug_x 1 %d\nold_t{pod=\"x\"} 1 %d\n", int64(someTime), int64(someTime)), team...)
			require.Equal(t, http.StatusNoContent, w.Code, w.Body)
			w = l.lines(InfluxV2, "/?precision=ms", fmt.Sprintf("debug,pod=a x=1 %d\nold,pod=a i=1 %d\n", int64(someTime), int64(someTime)), team...)
			require.Equal(t, http.StatusNoContent, w.Code, w.Body)
		}
		got := l.read("team")
		require.Contains(t, got, `{__name__="new_t", added="yes"}`)
		require.Contains(t, got, `{__name__="new_i", added="yes"}`)
		require.Len(t, got, 4)
		require.InDelta(t, 8, l.discarded(remotewrite.ReasonRelabel), 0)

		l.ok(protocolV1, sent(9)[:1]) // another tenant
		require.Len(t, l.read(anonymous), 1)
		set("overrides: {team: {metric_relabel_configs: [{regex: __name__, action: labeldrop}]}}")
		w := l.send(protocolV1, sent(9), team...)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, w.Body.String(), `series {pod="1"} has no metric name`)
		set("")
		l.ok(protocolV1, sent(9), team...)
		require.Len(t, l.read("team"), 7)
	})
}

// TestRelabelSeesWholeLabelSets: rules do not hide labels beyond the limit, which are not read.
func TestRelabelSeesWholeLabelSets(t *testing.T) {
	l, _ := governed(t, Grouped, "overrides: {team: {metric_relabel_configs: [{regex: label_.*, action: labeldrop}]}}")
	w := l.send(protocolV1, []item{{Lset: many(150), Floats: []segment.Float{at(someTime, 1)}}}, team...)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "more label names than the limit of 100")
	w = l.send(protocolV1, []item{{Lset: []string{"label_x", "1", "__name__", "m", "label_x", "2"}, Floats: []segment.Float{at(someTime, 1)}}}, team...)
	require.Contains(t, w.Body.String(), "duplicate label name")
	require.Empty(t, l.store.Keys())
}

// TestHourlySeries: series beyond the limit are refused until the next hour; accepted ones never
// are.
func TestHourlySeries(t *testing.T) {
	inModes(t, func(t *testing.T, mode Mode) {
		l, set := governed(t, mode, "overrides: {team: {max_hourly_series: 2}}")
		items := func(names ...string) (out []item) {
			for _, n := range names {
				out = append(out, gauge(n, at(someTime, 1)))
			}
			return out
		}
		l.ok(protocolV1, items("a", "b"), team...)
		for _, version := range protocols {
			w := l.send(version, items("c", "a", "d", "b"), team...)
			require.Equal(t, http.StatusBadRequest, w.Code)
			require.Contains(t, w.Body.String(), "is one more than the 2 that the tenant may write in one hour (UTC) (max_hourly_series); it is set by max_hourly_series of the tenant, or --ingest.max-hourly-series; and 1 more offences; what is valid was stored")
		}
		require.Equal(t, want(t, protocolV1, items("a", "b")), l.read("team"))
		require.Len(t, l.refused("team"), 4)
		require.Equal(t, "max_hourly_series", l.refused("team")[0].Reason)
		set("overrides: {team: {max_hourly_series: 2, request_rate: 1000}}") // the count stays
		require.Equal(t, http.StatusBadRequest, l.send(protocolV1, items("c"), team...).Code)
		l.ok(protocolV1, items("a"), team...)
		l.later.Add(int64(time.Hour))
		l.ok(protocolV1, items("c", "a"), team...)
		require.Equal(t, http.StatusBadRequest, l.send(protocolV1, items("b"), team...).Code)
	})
}

// TestSeriesAreCountedInTheMemoryOfTheProcess: a sender is told to try again while there is no
// memory to count its series, and is never told to give up. Each time another request for memory is
// refused, until none is left.
func TestSeriesAreCountedInTheMemoryOfTheProcess(t *testing.T) {
	uncounted := 0
	for refused := int64(1); ; refused++ {
		set := quick()
		set.InflightWait, set.Limits.MaxHourlySeries = time.Millisecond, 10
		var asked atomic.Int64
		usage := func() int64 {
			if asked.Load() == refused {
				return 1 << 30
			}
			return 0
		}
		clock := func() time.Time { return time.Unix(asked.Add(1), 0) } // every measurement is a new one
		process := memory.New(1<<30, memory.Probe{Usage: usage, Free: func() {}, Now: clock}, nil)
		l := newLakeThrough(t, set, func() time.Time { return time.UnixMilli(someTime) }, func(s objstore.Store) objstore.Store { return s }, Within(process))
		w := l.send(protocolV1, []item{gauge("m", at(someTime, 1))})
		if asked.Load() < refused {
			break
		}
		if w.Code == http.StatusNoContent { // a second request for the same memory was granted
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), memory.Flag)
		if strings.HasPrefix(w.Body.String(), "count series: ") {
			uncounted++
			l.ok(protocolV1, []item{gauge("m", at(someTime, 1))})
		}
	}
	require.Equal(t, 1, uncounted)
}

// TestStaleConsumer: what a front accepts under a tenant's limits, its consumer accepts, whatever
// its own document says.
func TestStaleConsumer(t *testing.T) {
	l, set := governed(t, Buffered, "overrides: {team: {max_label_names_per_series: 500, creation_grace_period: 1y}}")
	l.manual = true
	wide := item{Lset: many(400), Floats: []segment.Float{at(someTime+int64(300*24*time.Hour/time.Millisecond), 1)}}
	l.ok(protocolV1, []item{wide}, team...)
	set("overrides: {team: {max_label_names_per_series: 1, metric_relabel_configs: [{source_labels: [__name__], regex: .*, action: drop}]}}")
	require.Equal(t, http.StatusBadRequest, l.send(protocolV1, []item{wide}, team...).Code)
	require.Empty(t, l.consume(), "%s", &l.log)
	require.Equal(t, want(t, protocolV1, []item{wide}), l.read("team"))
}

// TestCountersOfTenantsAreBounded counts the refusals of the tenants after the first hundred
// together.
func TestCountersOfTenantsAreBounded(t *testing.T) {
	l := calm(t)
	for i := range 105 {
		l.send(protocolV1, []item{gauge("m", at(1<<60, 1))}, "X-Scope-OrgID", fmt.Sprintf("t%d", i))
	}
	require.Equal(t, 101, testutil.CollectAndCount(l.stage.met.refused))
	require.InDelta(t, 5, testutil.ToFloat64(l.stage.met.refused.WithLabelValues(othersLabel, string(remotewrite.ReasonTimeRange))), 0)
	require.Len(t, l.refused("t104"), 1)
	r := httptest.NewRequest(http.MethodGet, "/api/v1/status/refused", http.NoBody)
	r.Header.Set("X-Scope-OrgID", "a|b")
	w := httptest.NewRecorder()
	l.stage.RefusedHandler().ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "invalid tenant")
}
