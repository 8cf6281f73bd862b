package senders

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

// TestPushgatewayClient: client_golang's package push changes groups, and takes the answers for
// those of a Pushgateway.
func TestPushgatewayClient(t *testing.T) {
	store, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	var second atomic.Int64
	now := func() time.Time { return time.Unix(1_700_000_000+second.Load(), 0) }
	stage, err := ingest.New(ingest.DefaultSettings(), store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close(t.Context())) })
	mux := http.NewServeMux()
	mux.Handle("/metrics/{group...}", stage.PushHandler("/metrics/"))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	files := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "files", Help: "Files."}, []string{"disk"})
	files.WithLabelValues("a").Set(1)
	files.WithLabelValues("b").Set(2)
	pusher := func(c prometheus.Collector) *push.Pusher {
		return push.New(server.URL, "back/up").Grouping("path", "").Collector(c)
	}
	require.NoError(t, pusher(files).Push())
	second.Add(1)
	files.DeleteLabelValues("a")
	done := prometheus.NewCounter(prometheus.CounterOpts{Name: "done_total"})
	done.Inc()
	require.NoError(t, pusher(done).Add())
	second.Add(1)
	require.NoError(t, pusher(files).Add())
	second.Add(1)
	require.ErrorContains(t, pusher(stamped{}).Push(), "pushed metrics must not have timestamps")
	require.NoError(t, pusher(files).Delete())
	require.NoError(t, pusher(files).Delete(), "as of a group that is not there")

	r := &receiver{store: store}
	got, _ := r.stored(t)
	got = slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, "_time_seconds") })
	require.Equal(t, []string{
		`{__name__="done_total", job="back/up"} 0 1700000001000 3ff0000000000000`,
		`{__name__="done_total", job="back/up"} 0 1700000003001 7ff0000000000002`,
		`{__name__="files", disk="a", job="back/up"} 0 1700000000000 3ff0000000000000`,
		`{__name__="files", disk="a", job="back/up"} 0 1700000002000 7ff0000000000002`,
		`{__name__="files", disk="b", job="back/up"} 0 1700000000000 4000000000000000`,
		`{__name__="files", disk="b", job="back/up"} 0 1700000002000 4000000000000000`,
		`{__name__="files", disk="b", job="back/up"} 0 1700000003001 7ff0000000000002`,
	}, got)
}

// stamped is a metric with a timestamp.
type stamped struct{}

func (stamped) Describe(ch chan<- *prometheus.Desc) { ch <- stampedDesc }

func (stamped) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewMetricWithTimestamp(time.Unix(5, 0), prometheus.MustNewConstMetric(stampedDesc, prometheus.GaugeValue, 1))
}

var stampedDesc = prometheus.NewDesc("stamped", "", nil, nil)
