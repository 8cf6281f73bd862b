package compactapp_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

const table = "v1/a/iceberg/samples/metadata/v1.metadata.json"

// compacted returns the parts of a ready process whose store has a block of a week ago. The first
// publication fails at the table.
func compacted(t *testing.T) (process.Parts, *memstore.Store) {
	t.Helper()
	begin := time.Now()
	var later atomic.Int64
	var fails atomic.Bool
	fails.Store(true)
	faults := func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Put && c.Key == table && fails.Swap(false) {
			return memstore.Fault{Err: errors.New("injected")}
		}
		return memstore.Fault{}
	}
	store := memstore.New(memstore.Settings{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }, Faults: faults})
	body, _, err := segmenttest.Encode([]segment.Row{{
		Labels: labels.FromStrings(model.MetricNameLabel, "up"), Floats: []segment.Float{{T: begin.UnixMilli(), V: 1}},
	}}, nil)
	require.NoError(t, err)
	s := key.Segment{Tenant: "a", Window: key.WindowOf(begin.UnixMilli())}
	require.NoError(t, s.ID.SetTime(ulid.Timestamp(begin)))
	_, err = store.Put(t.Context(), s.String(), bytes.NewReader(body), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	later.Store(int64(7 * 24 * time.Hour))

	ready := make(chan struct{})
	close(ready)
	p := process.Parts{Store: store, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Ready: ready, Now: time.Now}
	stage, err := compactapp.Background(nil, compactapp.DefaultSettings(), false, time.Millisecond)(t.Context(), p)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		m, _, err := catalog.ReadManifest(t.Context(), store, "a")
		return err == nil && len(m.Blocks) == 1
	}, 5*time.Minute, time.Millisecond)
	require.NoError(t, stage.Drain(t.Context()))
	require.NoError(t, stage.Close())
	return p, store
}

// TestPublishes: the stage publishes again after a failure, and once per state of the store.
func TestPublishes(t *testing.T) {
	p, store := compacted(t)
	stage, err := compactapp.Publish(compactapp.PublishSettings{Interval: time.Millisecond}, "s3://bucket", time.Minute)(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, stage.Routes())
	const counts = `
# HELP promlake_publish_total Publications of a tenant's Iceberg tables after its blocks had changed, by result.
# TYPE promlake_publish_total counter
promlake_publish_total{result="error"} 1
promlake_publish_total{result="ok"} 1
`
	require.Eventually(t, func() bool {
		return testutil.GatherAndCompare(p.Registry, strings.NewReader(counts), "promlake_publish_total") == nil
	}, 5*time.Minute, time.Millisecond)
	require.NoError(t, stage.Drain(t.Context()))
	require.NoError(t, stage.Close())
	b, _, err := objstore.ReadAll(t.Context(), store, table)
	require.NoError(t, err)
	require.Contains(t, string(b), `"location":"s3://bucket/v1/a/iceberg/samples"`)
}

// TestTicks: in a function, the stage publishes at each tick, and a failure is that of the tick.
func TestTicks(t *testing.T) {
	p, store := compacted(t)
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	stage, err := compactapp.Publish(compactapp.PublishSettings{}, "s3://bucket", time.Minute)(t.Context(), p)
	require.NoError(t, err)
	tick := stage.(process.Scheduled).Tick
	require.ErrorContains(t, tick(t.Context(), time.Now()), "publish tenant a: table samples: ")
	require.NoError(t, tick(t.Context(), time.Now()))
	require.NoError(t, tick(t.Context(), time.Now()))
	_, _, err = objstore.ReadAll(t.Context(), store, table)
	require.NoError(t, err)
}

func TestInterval(t *testing.T) {
	build := compactapp.Publish(compactapp.PublishSettings{Enabled: true, Interval: time.Minute}, "s3://bucket", time.Minute)
	_, err := build(t.Context(), process.Parts{})
	require.ErrorContains(t, err, "publish.interval: want less than compactor.deletion-delay (1m0s), after which files of published tables are deleted, got 1m0s")
}

func TestEndsBeforeTheProcessIsReady(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	p := process.Parts{Store: store, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Ready: make(chan struct{}), Now: time.Now}
	stage, err := compactapp.Publish(compactapp.PublishSettings{Interval: time.Millisecond}, "s3://bucket", time.Minute)(t.Context(), p)
	require.NoError(t, err)
	require.NoError(t, stage.Drain(t.Context()))
	require.NoError(t, stage.Close())
	require.Empty(t, store.Keys())
}

func TestLocate(t *testing.T) {
	for _, tc := range [][3]string{
		{"", "s3://bucket/prefix?endpoint=http://localhost", "s3://bucket/prefix/k"}, {"s3a://bucket/prefix/", "s3://bucket", "s3a://bucket/prefix/k"},
		{"", "/data", "file:///data/k"},
	} {
		f, err := compactapp.Locate(tc[0], tc[1])
		require.NoError(t, err)
		require.Equal(t, tc[2], f("k"))
	}
	for _, tc := range [][2]string{{"bucket/prefix", "s3://bucket"}, {"", "s3://"}} {
		_, err := compactapp.Locate(tc[0], tc[1])
		require.Error(t, err)
	}
}
