package ingest

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
)

func TestWriteEverything(t *testing.T) {
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		w := l.ok(version, everything())
		require.Empty(t, w.Body.String())
		require.Equal(t, want(t, version, everything()), l.read(anonymous))
		require.Equal(t, []string{"20231114T2200Z"}, l.windows(anonymous))
		require.Equal(t, []segment.Metadata{everything()[2].Meta, everything()[3].Meta}, l.info(l.keys(anonymous)[0]).Metadata)
		headers := []string{"", "", ""}
		if version == protocolV2 {
			headers = []string{"8", "8", "3"}
		}
		require.Equal(t, headers, writtenHeaders(w.Header()))
		// Known series take another way through the decoder.
		l.ok(version, everything())
		require.Equal(t, want(t, version, everything()), l.read(anonymous))
		require.Len(t, l.keys(anonymous), 2)
	})
}

func writtenHeaders(h http.Header) []string {
	return []string{h.Get(samplesWritten), h.Get(histogramsWritten), h.Get(exemplarsWritten)}
}

// TestOrderOfArrival writes samples out of order and twice: they are sorted by time, and of equal
// times the last received sample stays.
func TestOrderOfArrival(t *testing.T) {
	hist := func(t int64, n int64) segment.Hist { return segment.Hist{T: t, H: tsdbutil.GenerateTestHistogram(n)} }
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		items := []item{
			gauge("b", at(someTime+3, 3), at(someTime+1, 1), at(someTime+2, 2), at(someTime+1, 10), at(someTime+3, 30)),
			gauge("a", at(someTime+1, 1)),
			gauge("b", at(someTime+2, 20)),
			{Lset: gauge("h").Lset, Hists: []segment.Hist{hist(someTime+2, 2), hist(someTime+1, 1), hist(someTime+2, 3)}},
			{Lset: gauge("h").Lset, Hists: []segment.Hist{hist(someTime+1, 4)}},
			gauge("a", at(someTime, 0), at(someTime+1, 1)),
		}
		l.ok(version, items)
		require.Len(t, l.keys(anonymous), 1)
		require.Equal(t, want(t, version, []item{
			gauge("a", at(someTime, 0), at(someTime+1, 1)),
			gauge("b", at(someTime+1, 10), at(someTime+2, 20), at(someTime+3, 30)),
			{Lset: gauge("h").Lset, Hists: []segment.Hist{hist(someTime+1, 4), hist(someTime+2, 3)}},
		}), l.read(anonymous))
		// A later request wins over what is stored.
		l.tick()
		l.ok(version, []item{gauge("a", at(someTime, 5))})
		require.Equal(t, want(t, version, []item{gauge("a", at(someTime, 5), at(someTime+1, 1))})[lsetText(gauge("a").Lset)], l.read(anonymous)[lsetText(gauge("a").Lset)])
	})
}

// TestWindows writes samples of many times: each lies in the segment of its own window.
func TestWindows(t *testing.T) {
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		start := int64(key.WindowOf(someTime))
		items := []item{
			{
				Lset:      gauge("late").Lset,
				Floats:    []segment.Float{at(key.MinTime, 1), at(-1, 2), at(0, 3), at(start-1, 4), at(start, 5), {T: someTime, V: 6, ST: 1}},
				Exemplars: []exemplar.Exemplar{{Ts: start - 2*key.WindowMillis, HasTs: true, Value: 1, Labels: labels.FromStrings("trace_id", "1")}},
			},
			gauge("now", at(start-1, 1), at(someTime, 2)),
			{Lset: gauge("hist").Lset, Hists: []segment.Hist{{T: start - 3*key.WindowMillis, H: tsdbutil.GenerateTestHistogram(1)}}},
		}
		l.ok(version, items)
		require.Equal(t, want(t, version, items), l.read(anonymous))
		require.Equal(t, []string{
			"00000101T0000Z", "19691231T2200Z", "19700101T0000Z", "20231114T1600Z", "20231114T1800Z", "20231114T2000Z", "20231114T2200Z",
		}, l.windows(anonymous))
		require.Equal(t, version == protocolV2, l.info(l.keys(anonymous)[6]).HasST)
		require.False(t, l.info(l.keys(anonymous)[5]).HasST)
	})
}

// TestManyWindows goes to the limit of windows in a request and over it.
func TestManyWindows(t *testing.T) {
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		set := quick()
		limit := int64(set.MaxWindows)
		require.Equal(t, int64(100), limit, "a backfill of 8 days fits")
		l := calmWith(t, mode, set)
		it := gauge("m")
		for i := range limit {
			it.Floats = append(it.Floats, at(i*key.WindowMillis, 1))
		}
		l.ok(version, []item{it})
		require.Len(t, l.keys(anonymous), int(limit))
		require.Equal(t, want(t, version, []item{it}), l.read(anonymous))
		it.Floats = append(it.Floats, at(limit*key.WindowMillis, 1))
		w := l.send(version, []item{it})
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, w.Body.String(), "101 windows of 2h, the limit is 100 (max-windows-per-request)")
		require.Equal(t, 1.0, testutil.ToFloat64(l.stage.met.limited.WithLabelValues("max-windows-per-request")))
		require.Contains(t, w.Body.String(), "too_many_windows")
		require.Len(t, l.keys(anonymous), int(limit))
		// Far apart, yet few.
		l.ok(version, []item{gauge("far", at(key.MinTime, 1), at(someTime, 1))})
	})
}

func TestTenantsAreApart(t *testing.T) {
	for _, mode := range modes {
		t.Run("mode="+string(mode), func(t *testing.T) { testTenantsAreApart(t, calmIn(t, mode)) })
	}
}

func testTenantsAreApart(t *testing.T, l *lake) {
	l.ok(protocolV1, []item{gauge("m", at(someTime, 1))}, "X-Scope-OrgID", "team-a")
	l.ok(protocolV1, []item{gauge("m", at(someTime, 2))}, "X-Scope-OrgID", "team-b")
	l.ok(protocolV1, []item{gauge("m", at(someTime, 3))})
	for id, v := range map[string]float64{"team-a": 1, "team-b": 2, anonymous: 3} {
		require.Equal(t, want(t, protocolV1, []item{gauge("m", at(someTime, v))}), l.read(id))
	}
	for _, bad := range []string{"..", "a/b", "ü", long(151)} {
		w := l.send(protocolV1, []item{gauge("m", at(someTime, 1))}, "X-Scope-OrgID", bad)
		require.Equal(t, http.StatusBadRequest, w.Code, bad)
		require.Contains(t, w.Body.String(), "tenant")
	}
	require.Len(t, l.store.Keys(), 3)
}

func TestEmptyRequests(t *testing.T) {
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		l.ok(version, nil)
		require.Empty(t, l.store.Keys())
	})
	l := calm(t)
	l.ok(protocolV1, []item{{Lset: gauge("without_samples").Lset}})
	require.Empty(t, l.store.Keys())
}

// TestExemplarsAlone writes exemplars as Prometheus sends them: each in a series of its own,
// without samples.
func TestExemplarsAlone(t *testing.T) {
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		ex := gauge("m")
		ex.Exemplars = []exemplar.Exemplar{{Ts: someTime, HasTs: true, Value: 1, Labels: labels.FromStrings("trace_id", "1")}}
		w := l.ok(version, []item{gauge("m", at(someTime, 1)), ex})
		both := ex
		both.Floats = []segment.Float{at(someTime, 1)}
		require.Equal(t, want(t, version, []item{both}), l.read(anonymous))
		if version == protocolV2 {
			require.Equal(t, []string{"1", "0", "1"}, writtenHeaders(w.Header()))
		}
		l.ok(version, []item{ex})
		require.Len(t, l.keys(anonymous), 2)
	})
}
