package tenantapp_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/tenantapp"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// served returns the route of a stage over a store, and its registry.
func served(t *testing.T, store objstore.Store, limit int) (process.Route, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	stage, err := tenantapp.New(tenantapp.Served{MaxTenants: limit})(t.Context(), process.Parts{Store: store, Registry: reg})
	require.NoError(t, err)
	require.Len(t, stage.Routes(), 1)
	return stage.Routes()[0], reg
}

// ask requests the tenants.
func ask(t *testing.T, r process.Route) (int, []tenantapp.Stored, string) {
	t.Helper()
	w := httptest.NewRecorder()
	r.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tenantapp.Path, nil))
	var body struct {
		Error string
		Data  struct{ Tenants []tenantapp.Stored }
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
	return w.Code, body.Data.Tenants, body.Error
}

// TestTenants: each tenant is described by its live objects, and a damaged one hides no other.
func TestTenants(t *testing.T) {
	w := filled(t)
	window := key.WindowOf(w.now.Add(-time.Hour).UnixMilli())
	w.put(key.Manifest("team"))
	r, reg := served(t, w, 3)
	require.Equal(t, auth.Operate, r.Access)
	code, tenants, _ := ask(t, r)
	require.Equal(t, http.StatusOK, code)
	require.Len(t, tenants, 3)
	first := tenants[0]
	require.Positive(t, first.DollarsPerMonth)
	require.Greater(t, first.Bytes, int64(1), "of two segments and a block of one byte")
	first.DollarsPerMonth, first.Bytes = 0, 0
	require.Equal(t, tenantapp.Stored{
		Tenant: name, Segments: 2, Blocks: 1, Samples: 1, Start: int64(window), End: window.End(),
		Waiting: 2, Deletions: 1,
	}, first)
	require.Equal(t, "team", tenants[1].Tenant)
	require.Contains(t, tenants[1].Error, "manifest")
	require.Equal(t, tenantapp.Stored{Tenant: name + "b"}, tenants[2], "its only object is no segment")

	few, counted := served(t, w, 2)
	code, _, text := ask(t, few)
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, "the store has 3 tenants, and one request may describe 2 (--web.max-tenants)", text)
	away, failed := served(t, gone{w}, 3)
	code, _, text = ask(t, away)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, text, errGone.Error())
	for result, registry := range map[string]*prometheus.Registry{"ok": reg, "limit": counted, "failed": failed} {
		const head = "# HELP promlake_tenants_requests_total Requests to describe all tenants by result: ok, limit (more tenants than --web.max-tenants), busy (another one ran) and failed (the store did not answer).\n# TYPE promlake_tenants_requests_total counter\n"
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(head+"promlake_tenants_requests_total{result=\""+result+"\"} 1\n")))
	}
}

var errGone = errors.New("the store is gone")

// gone is a store that lists no tenants.
type gone struct{ objstore.Store }

func (gone) ListFolders(context.Context, string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", errGone) }
}

// waiting is a store whose listings wait.
type waiting struct {
	objstore.Store
	entered, release chan struct{}
}

func (w waiting) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	select {
	case w.entered <- struct{}{}:
	case <-w.release:
	}
	<-w.release
	return w.Store.List(ctx, prefix, after)
}

// TestTenantsOneAtATime: a request is refused while another one reads the tenants.
func TestTenantsOneAtATime(t *testing.T) {
	w := waiting{filled(t), make(chan struct{}), make(chan struct{})}
	r, _ := served(t, w, 3)
	first := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		r.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tenantapp.Path, nil))
		first <- w.Code
	}()
	<-w.entered
	code, _, text := ask(t, r)
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, text, "another request")
	close(w.release)
	require.Equal(t, http.StatusOK, <-first)
}
