package selfwrite_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/selfwrite"
)

const ts = 1_700_000_000_000

// lines formats a request as name{labels} value@ms.
func lines(req *prompb.WriteRequest) map[string][]prompb.Sample {
	out := map[string][]prompb.Sample{}
	for _, s := range req.Timeseries {
		var labels []string
		for _, l := range s.Labels {
			labels = append(labels, l.Name+"="+l.Value)
		}
		key := strings.Join(labels, ",")
		out[key] = append(out[key], s.Samples...)
	}
	return out
}

func TestTarget(t *testing.T) {
	reg := prometheus.NewRegistry()
	jobs := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "keep_jobs", Help: "Jobs."}, []string{"job", "empty"})
	jobs.WithLabelValues("flush", "").Set(3)
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "other", Help: "Other."})
	reg.MustRegister(jobs, other)
	target := selfwrite.Target{
		Gatherer: reg, Labels: map[string]string{"job": "x", "instance": "y"},
		Keep: func(family string) bool { return strings.HasPrefix(family, "keep_") },
	}
	families, err := target.Gather()
	require.NoError(t, err)
	req := &prompb.WriteRequest{}
	require.NoError(t, target.Append(req, families, ts))
	require.Equal(t, map[string][]prompb.Sample{
		"__name__=keep_jobs,exported_job=flush,instance=y,job=x": {{Value: 3, Timestamp: ts}},
	}, lines(req))

	target.Keep = nil
	families, err = target.Gather()
	require.NoError(t, err)
	require.Len(t, families, 2)
	require.Equal(t, prompb.MetricMetadata{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "keep_jobs", Help: "Jobs."}, selfwrite.Metadata(families[0]))
}

func TestTargetThatFailsInPart(t *testing.T) {
	good := prometheus.NewRegistry()
	good.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "g", Help: "G."}))
	bad := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("no luck") })
	families, err := selfwrite.Target{Gatherer: prometheus.Gatherers{good, bad}}.Gather()
	require.ErrorContains(t, err, "gather metrics: ")
	require.ErrorContains(t, err, "no luck")
	require.Len(t, families, 1)
}

func TestZeros(t *testing.T) {
	before := time.Now()
	reg := prometheus.NewRegistry()
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "C."}, []string{"l"})
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "H.", Buckets: []float64{1}})
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "s", Help: "S.", Objectives: map[float64]float64{0.5: 0.1}})
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g", Help: "G."})
	untold := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "u_total", Help: "U."}, func() float64 { return 7 })
	reg.MustRegister(counter, histogram, summary, gauge, untold)
	counter.WithLabelValues("a").Add(5)
	histogram.Observe(3)
	summary.Observe(4)
	gauge.Set(6)
	target := selfwrite.Target{Gatherer: reg}
	families, err := target.Gather()
	require.NoError(t, err)
	// Creation times have nanoseconds, samples have milliseconds.
	since, until := before.Add(-time.Millisecond), time.Now().Add(time.Millisecond)

	req := &prompb.WriteRequest{}
	require.NoError(t, target.Append(req, selfwrite.Zeros(families, since, until), ts))
	got := lines(req)
	for key, samples := range got {
		require.Len(t, samples, 1, key)
		require.Zero(t, samples[0].Value, key)
		require.False(t, math.Signbit(samples[0].Value), key)
		require.GreaterOrEqual(t, samples[0].Timestamp, before.UnixMilli(), key)
		require.Less(t, samples[0].Timestamp, until.UnixMilli(), key)
	}
	for _, key := range []string{
		"__name__=c_total,l=a", "__name__=h_bucket,le=1", "__name__=h_bucket,le=+Inf", "__name__=h_sum", "__name__=h_count", "__name__=s_sum", "__name__=s_count",
	} {
		require.Contains(t, got, key)
		delete(got, key)
	}
	// In some versions of the library, counter functions have no creation time.
	delete(got, "__name__=u_total")
	require.Empty(t, got, "no gauges, no quantiles")

	require.Empty(t, selfwrite.Zeros(families, until, until.Add(time.Hour)), "created earlier")
	require.Empty(t, selfwrite.Zeros(families, since.Add(-time.Hour), since), "created later")
}
