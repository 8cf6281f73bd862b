package doctorapp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/doctorapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/store/objstore"
)

// served returns the route of a stage over a store, and its registry.
func served(t *testing.T, store objstore.Store, s doctorapp.Served) (process.Route, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	stage, err := doctorapp.New(s)(t.Context(), process.Parts{Store: store, Registry: reg})
	require.NoError(t, err)
	require.Len(t, stage.Routes(), 1)
	return stage.Routes()[0], reg
}

// ask requests an examination of a tenant.
func ask(r process.Route, name string) (int, doctorapp.Report, string) {
	req := httptest.NewRequest(http.MethodGet, doctorapp.Path, nil)
	req.Header.Set(tenant.Header, name)
	w := httptest.NewRecorder()
	r.Handler.ServeHTTP(w, req)
	var body struct {
		Error string
		Data  doctorapp.Report
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		panic(err)
	}
	return w.Code, body.Data, body.Error
}

func TestServeReport(t *testing.T) {
	l := newLake(t)
	r, reg := served(t, l.store, doctorapp.Served{MaxObjects: 2})
	require.Equal(t, auth.Operate, r.Access)
	code, report, _ := ask(r, "a")
	require.Equal(t, http.StatusOK, code)
	require.True(t, report.Healthy())
	require.Equal(t, [2]int{1, 1}, [2]int{report.Tenants[0].Segments, report.Tenants[0].Blocks})
	code, report, _ = ask(r, "nobody")
	require.Equal(t, http.StatusOK, code)
	require.True(t, report.Healthy())
	code, _, text := ask(r, "a/b")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, text, "tenant")

	l.flip(l.block.File(block.MetaFile), 5)
	code, report, _ = ask(r, "a")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, l.block.Prefix(), report.Tenants[0].Damaged[0].Object)

	few, counted := served(t, l.store, doctorapp.Served{MaxObjects: 1})
	code, _, text = ask(few, "a")
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, "tenant a has 2 live objects, and one request may examine 1 (--web.doctor-max-objects): run promlake doctor --tenant a", text)
	for registry, want := range map[*prometheus.Registry]string{
		reg:     "promlake_doctor_requests_total{result=\"damaged\"} 1\npromlake_doctor_requests_total{result=\"failed\"} 1\npromlake_doctor_requests_total{result=\"ok\"} 2\n",
		counted: "promlake_doctor_requests_total{result=\"limit\"} 1\n",
	} {
		const head = "# HELP promlake_doctor_requests_total Requests to examine a tenant by result: ok, damaged, limit (more objects than --web.doctor-max-objects), busy (another examination ran) and failed (the store did not answer).\n# TYPE promlake_doctor_requests_total counter\n"
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(head+want)))
	}
}

// waiting is a store that reads nothing before it is told to, and then fails.
type waiting struct {
	objstore.Store
	entered, release chan struct{}
}

var errGone = errors.New("the store is gone")

func (w waiting) Get(context.Context, string, int64, int64) (io.ReadCloser, objstore.Object, error) {
	select {
	case w.entered <- struct{}{}:
	case <-w.release:
	}
	<-w.release
	return nil, objstore.Object{}, errGone
}

// TestServeOneAtATime: an examination is refused while another one runs.
func TestServeOneAtATime(t *testing.T) {
	w := waiting{newLake(t).store, make(chan struct{}), make(chan struct{})}
	r, _ := served(t, w, doctorapp.Served{MaxObjects: 10})
	first := make(chan int)
	go func() {
		code, _, _ := ask(r, "a")
		first <- code
	}()
	<-w.entered
	code, _, text := ask(r, "a")
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, text, "another examination")
	close(w.release)
	require.Equal(t, http.StatusOK, <-first, "a manifest that cannot be read is part of the report")
}
