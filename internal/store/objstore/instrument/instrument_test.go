package instrument_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/internal/store/objstore/instrument"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) objstore.Store {
		return instrument.New(memstore.New(memstore.Settings{}), prometheus.NewRegistry(), nil)
	})
}

func TestCounts(t *testing.T) {
	script := &memstore.Script{}
	reg := prometheus.NewRegistry()
	s := instrument.New(memstore.New(memstore.Settings{Faults: script.Next}), reg, nil)
	put := func(key, value string, cond objstore.Condition) error {
		body := strings.NewReader("skip" + value)
		_, err := body.Seek(4, io.SeekStart)
		require.NoError(t, err)
		_, err = s.Put(t.Context(), key, body, cond)
		return err
	}
	require.NoError(t, put("k", "12345", objstore.Condition{}))
	require.ErrorIs(t, put("k", "123456789", objstore.Condition{IfAbsent: true}), objstore.ErrPrecondition)
	require.ErrorIs(t, put("", "1", objstore.Condition{}), objstore.ErrInvalidKey)
	script.Add(memstore.On(memstore.Put), memstore.Fault{Err: errors.New("fault")})
	require.Error(t, put("k", "123456789", objstore.Condition{}))

	read := func(ctx context.Context, key string, offset, length int64) error {
		r, _, err := s.Get(ctx, key, offset, length)
		if err != nil {
			return err
		}
		_, err = io.ReadAll(r)
		return errors.Join(err, r.Close())
	}
	require.NoError(t, read(t.Context(), "k", 0, -1))
	require.NoError(t, read(t.Context(), "k", 1, 2))
	require.ErrorIs(t, read(t.Context(), "absent", 0, -1), objstore.ErrNotFound)
	require.ErrorIs(t, read(t.Context(), "k", 99, -1), objstore.ErrRange)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, read(ctx, "k", 0, -1), context.Canceled)
	script.Add(memstore.On(memstore.Get), memstore.Fault{Err: errors.New("fault"), When: memstore.Midway})
	require.Error(t, read(t.Context(), "k", 0, -1))

	for _, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		break
	}
	for _, err := range s.List(ctx, "", "") {
		require.Error(t, err)
	}
	require.NoError(t, s.Delete(t.Context(), "k"))

	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP promlake_objstore_bytes_total Bytes read from and written to the object store.
# TYPE promlake_objstore_bytes_total counter
promlake_objstore_bytes_total{op="get"} 9
promlake_objstore_bytes_total{op="put"} 5
# HELP promlake_objstore_read_failures_total Bodies of successful gets that failed while they were read.
# TYPE promlake_objstore_read_failures_total counter
promlake_objstore_read_failures_total 1
# HELP promlake_objstore_requests_total Object store calls by operation and outcome.
# TYPE promlake_objstore_requests_total counter
promlake_objstore_requests_total{op="delete",status="ok"} 1
promlake_objstore_requests_total{op="get",status="canceled"} 1
promlake_objstore_requests_total{op="get",status="not_found"} 1
promlake_objstore_requests_total{op="get",status="ok"} 3
promlake_objstore_requests_total{op="get",status="range_not_satisfiable"} 1
promlake_objstore_requests_total{op="list",status="canceled"} 1
promlake_objstore_requests_total{op="list",status="ok"} 1
promlake_objstore_requests_total{op="put",status="error"} 1
promlake_objstore_requests_total{op="put",status="invalid_key"} 1
promlake_objstore_requests_total{op="put",status="ok"} 1
promlake_objstore_requests_total{op="put",status="precondition_failed"} 1
`), "promlake_objstore_bytes_total", "promlake_objstore_read_failures_total", "promlake_objstore_requests_total"))

	families, err := reg.Gather()
	require.NoError(t, err)
	counts := map[string]uint64{}
	for _, f := range families {
		if f.GetName() == "promlake_objstore_request_duration_seconds" {
			for _, m := range f.GetMetric() {
				counts[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
			}
		}
	}
	assert.Equal(t, map[string]uint64{"get": 6, "put": 4, "list": 2, "delete": 1}, counts)
}

func TestLocal(t *testing.T) {
	dir := t.TempDir()
	f, err := filestore.New(dir)
	require.NoError(t, err)
	reg := prometheus.NewRegistry()
	l, ok := instrument.New(f, reg, nil).(objstore.Local)
	require.True(t, ok)
	assert.Equal(t, f.LocalPath("a/b"), l.LocalPath("a/b"))
	_, err = objstore.DeleteAll(t.Context(), l.(objstore.Store), []string{"a/b", "a/c"})
	require.NoError(t, err)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP promlake_objstore_requests_total Object store calls by operation and outcome.
# TYPE promlake_objstore_requests_total counter
promlake_objstore_requests_total{op="delete",status="ok"} 1
promlake_objstore_requests_total{op="get",status="ok"} 0
promlake_objstore_requests_total{op="list",status="ok"} 0
promlake_objstore_requests_total{op="put",status="ok"} 0
`), "promlake_objstore_requests_total"), "many deletions are one call")
	_, ok = instrument.New(memstore.New(memstore.Settings{}), reg, nil).(objstore.Local)
	assert.False(t, ok, "and two stores share a registerer")
}

func TestForeignMetric(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "promlake_objstore_bytes_total", Help: "x"}))
	assert.Panics(t, func() { instrument.New(memstore.New(memstore.Settings{}), reg, nil) })
}

// TestWrites: writes of segments and of manifests count for their tenant, others do not. A put that
// failed counts, because it may have had its effect.
func TestWrites(t *testing.T) {
	script, w := &memstore.Script{}, &instrument.Writes{}
	s := instrument.New(memstore.New(memstore.Settings{Faults: script.Next}), prometheus.NewRegistry(), w)
	segment := key.Segment{Tenant: "a", ID: ulid.ULID{1}}.String()
	_, err := s.Put(t.Context(), key.Rules("a"), strings.NewReader("x"), objstore.Condition{})
	require.NoError(t, err)
	require.Zero(t, w.Last("a"))
	_, err = s.Put(t.Context(), segment, strings.NewReader("x"), objstore.Condition{})
	require.NoError(t, err)
	first := w.Last("a")
	require.NotZero(t, first)
	require.Zero(t, w.Last("b"))
	_, err = s.Put(t.Context(), key.Manifest("b"), strings.NewReader("x"), objstore.Condition{})
	require.NoError(t, err)
	require.NotZero(t, w.Last("b"))
	script.Add(memstore.On(memstore.Put), memstore.Fault{Err: errors.New("fault")})
	_, err = s.Put(t.Context(), segment, strings.NewReader("x"), objstore.Condition{})
	require.Error(t, err)
	require.True(t, w.Last("a").After(first))
	for i := range 5000 {
		_, err = s.Put(t.Context(), key.Segment{Tenant: "t" + strconv.Itoa(i)}.String(), strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
	}
	require.False(t, w.Last("a").Before(first), "a forgotten tenant counts as written")
}
