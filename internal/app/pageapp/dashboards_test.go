package pageapp_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/pageapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// folder has two dashboards, a broken one, and files that are none. A ConfigMap of Kubernetes has
// the links of linked.json.
func folder(t *testing.T) pageapp.Folder {
	t.Helper()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside.json")
	for name, content := range map[string]string{
		"a.json": `{"title":"First","tags":["x"],"panels":[]}`, "team/b c.json": `{"dashboard":{"uid":"b-c","title":"Second"}}`, "broken.json": `{"title":`,
		"readme.txt": "no", ".hidden.json": "{}", "..data/linked.json": `{"title":"Linked"}`, outside: `{"title":"Secret"}`,
	} {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	require.NoError(t, os.Symlink("..data/linked.json", filepath.Join(dir, "linked.json")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "outside.json")))
	f, err := pageapp.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestList(t *testing.T) {
	got, err := folder(t).List()
	require.NoError(t, err)
	require.Len(t, got, 5)
	require.Contains(t, got[3].Error, "outside.json")
	got[3].Error = ""
	require.Equal(t, []pageapp.Entry{
		{Name: "a.json", Title: "First", Tags: []string{"x"}},
		{Name: "broken.json", Error: `dashboard "broken.json" is not JSON`},
		{Name: "linked.json", Title: "Linked"},
		{Name: "outside.json"},
		{Name: "team/b c.json", UID: "b-c", Title: "Second"},
	}, got)

	got, err = pageapp.Folder{}.List()
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = pageapp.Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "open folder of dashboards")
}

func TestListLimit(t *testing.T) {
	dir := t.TempDir()
	for i := range pageapp.MaxFiles + 1 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", i)), []byte("{}"), 0o600))
	}
	f, err := pageapp.Open(dir)
	require.NoError(t, err)
	_, err = f.List()
	require.ErrorContains(t, err, "more than 1000 dashboards")
	require.NoError(t, f.Close())
}

// serve returns the routes of a folder and a store.
func serve(t *testing.T, f pageapp.Folder, store objstore.Store, reg prometheus.Registerer) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	for _, r := range pageapp.Routes(f, store, reg, slog.New(slog.DiscardHandler)) {
		mux.Handle(r.Pattern, r.Handler)
	}
	return mux
}

// ask sends a request of a tenant for a dashboard. Headers follow as names and values.
func ask(t *testing.T, h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/api/v1/dashboards"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandlers(t *testing.T) {
	h := serve(t, folder(t), memstore.New(memstore.Settings{}), prometheus.NewRegistry())
	for _, tc := range []struct {
		path, body string
		code       int
	}{
		{"/a.json", `{"status":"success","data":{"title":"First","tags":["x"],"panels":[]}}`, 200},
		{"/team/b%20c.json", `{"status":"success","data":{"dashboard":{"uid":"b-c","title":"Second"}}}`, 200},
		{"/none.json", `{"status":"error","errorType":"not_found","error":"no such dashboard: \"none.json\""}`, 404},
		{"/.hidden.json", `{"status":"error","errorType":"not_found","error":"no such dashboard: \".hidden.json\""}`, 404},
		{"/readme.txt", `{"status":"error","errorType":"not_found","error":"no such dashboard: \"readme.txt\""}`, 404},
		{"/team", `{"status":"error","errorType":"not_found","error":"no such dashboard: \"team\""}`, 404},
		{"/%2e%2e%2fx", `{"status":"error","errorType":"not_found","error":"no such dashboard: \"../x\""}`, 404},
		{"/broken.json", `{"status":"error","errorType":"internal","error":"dashboard \"broken.json\" is not JSON"}`, 500},
	} {
		w := ask(t, h, http.MethodGet, tc.path, "")
		require.Equal(t, tc.code, w.Code, tc.path)
		require.JSONEq(t, tc.body, w.Body.String(), tc.path)
		require.Empty(t, w.Header().Get("ETag"))
	}
	w := ask(t, h, http.MethodGet, "", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `{"name":"a.json","title":"First","tags":["x"]}`)
	require.NotContains(t, w.Body.String(), "Secret")
}

// TestSave: of two who change the same version of a dashboard, the second one is refused. Tenants
// do not see what others saved.
func TestSave(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	h := serve(t, folder(t), store, prometheus.NewRegistry())
	const path, first = "/%C3%9Cber%20load", `{"title":"Über load","panels":[]}`
	w := ask(t, h, http.MethodPut, path, first, "If-None-Match", "*")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	version := w.Header().Get("ETag")
	require.Regexp(t, `^"[\w-]+"$`, version)
	require.Equal(t, []string{"v1/anonymous/dashboards/%C3%9Cber%20load.json"}, store.Keys())

	w = ask(t, h, http.MethodGet, path, "")
	require.JSONEq(t, `{"status":"success","data":`+first+`}`, w.Body.String())
	require.Equal(t, version, w.Header().Get("ETag"))
	require.Contains(t, ask(t, h, http.MethodGet, "", "").Body.String(), `{"name":"Über load","title":"Über load"}`)
	for _, other := range []*httptest.ResponseRecorder{ask(t, h, http.MethodGet, path, "", "X-Scope-OrgID", "b"), ask(t, h, http.MethodGet, "", "", "X-Scope-OrgID", "b")} {
		require.NotContains(t, other.Body.String(), "panels")
		require.NotContains(t, other.Body.String(), `"title":"Über load"`)
	}

	require.Equal(t, http.StatusOK, ask(t, h, http.MethodPut, path, first, "If-None-Match", "*").Code, "the same again is no conflict")
	w = ask(t, h, http.MethodPut, path, `{"panels":[1]}`, "If-None-Match", "*")
	require.Equal(t, http.StatusPreconditionFailed, w.Code)
	require.Contains(t, w.Body.String(), `there is a dashboard \"Über load\" already`)
	w = ask(t, h, http.MethodPut, path, `{"panels":[2]}`, "If-Match", "W/"+version)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	second := w.Header().Get("ETag")
	require.NotEqual(t, version, second)
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		w = ask(t, h, method, path, `{"panels":[3]}`, "If-Match", version)
		require.Equal(t, http.StatusPreconditionFailed, w.Code)
		require.JSONEq(t, `{"status":"error","errorType":"conflict","error":"somebody else has saved or deleted the dashboard \"Über load\" since you read it"}`, w.Body.String())
		w = ask(t, h, method, "/none", `{}`, "If-Match", version)
		require.Equal(t, http.StatusPreconditionFailed, w.Code)
	}
	require.Contains(t, ask(t, h, http.MethodGet, path, "").Body.String(), `[2]`)
	require.Equal(t, http.StatusOK, ask(t, h, http.MethodPut, path, `{"panels":[4]}`).Code)
	w = ask(t, h, http.MethodGet, path, "")
	require.Contains(t, w.Body.String(), `[4]`)
	require.Equal(t, http.StatusOK, ask(t, h, http.MethodDelete, path, "", "If-Match", w.Header().Get("ETag")).Code)
	require.Equal(t, http.StatusNotFound, ask(t, h, http.MethodGet, path, "").Code)
	require.Equal(t, http.StatusOK, ask(t, h, http.MethodDelete, path, "").Code, "it is gone already")
	require.Empty(t, store.Keys())
}

func TestSaveRefuses(t *testing.T) {
	store, reg := memstore.New(memstore.Settings{}), prometheus.NewRegistry()
	h := serve(t, folder(t), store, reg)
	large := `{"a":"` + strings.Repeat("x", pageapp.MaxSavedBytes) + `"}`
	for _, tc := range []struct {
		path, body, match string
		code              int
		text              string
	}{
		{"/%2e%2e%2fx", "{}", "", 400, `name of a dashboard \"../x\"`},
		{"/..%5cx", "{}", "", 400, "name of a dashboard"},
		{"/a%2Fb", "{}", "", 400, "name of a dashboard"},
		{"/a/b", "{}", "", 400, "name of a dashboard"},
		{"/.a", "{}", "", 400, "name of a dashboard"},
		{"/a%00", "{}", "", 400, "name of a dashboard"},
		{"/%ff", "{}", "", 400, "name of a dashboard"},
		{"/", "{}", "", 400, "name of a dashboard"},
		{"/" + strings.Repeat("a", pageapp.MaxNameBytes+1), "{}", "", 400, "the name of the dashboard has 81 bytes, the limit is 80"},
		{"/a.json", "{}", "", 405, "files in the folder of --web.dashboards"},
		{"/a", large, "", 413, "more than 1048576 bytes"},
		{"/a", "[]", "", 400, "no JSON object"},
		{"/a", `{"a":`, "", 400, "no JSON object"},
		{"/a", "{}", `"a", "b"`, 400, "want one ETag"},
		{"/a", "{}", "*", 400, "want one ETag"},
	} {
		w := ask(t, h, http.MethodPut, tc.path, tc.body, "If-Match", tc.match)
		require.Equal(t, tc.code, w.Code, tc.path)
		require.Contains(t, w.Body.String(), tc.text)
		require.Equal(t, tc.code == 405, w.Header().Get("Allow") != "")
	}
	require.NotEqual(t, http.StatusOK, ask(t, h, http.MethodPut, "/../x", "{}").Code)
	require.Equal(t, http.StatusBadRequest, ask(t, h, http.MethodPut, "/a", "{}", "X-Scope-OrgID", "a/b").Code)
	require.Empty(t, store.Keys())

	for i := range pageapp.MaxSaved {
		_, err := store.Put(t.Context(), key.Dashboard("anonymous", strconv.Itoa(i)), strings.NewReader("{}"), objstore.Condition{})
		require.NoError(t, err)
	}
	w := ask(t, h, http.MethodPut, "/a", "{}")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Contains(t, w.Body.String(), "the tenant has 500 dashboards, the limit is 500: delete some")
	require.Equal(t, http.StatusOK, ask(t, h, http.MethodPut, "/7", `{"panels":[]}`).Code, "it is not a further one")
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP promlake_dashboards_limited_total Dashboards that were not saved because of a limit: dashboards of a tenant, bytes of a dashboard, length of its name.
# TYPE promlake_dashboards_limited_total counter
promlake_dashboards_limited_total{limit="bytes"} 1
promlake_dashboards_limited_total{limit="dashboards"} 1
promlake_dashboards_limited_total{limit="name"} 1
`)))
}

// TestSaveFails: a write that failed and took effect is one that succeeded, once it is repeated.
// Errors of the store stay in the log.
func TestSaveFails(t *testing.T) {
	var fault memstore.Fault
	store := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Put {
			return fault
		}
		return memstore.Fault{}
	}})
	h := serve(t, folder(t), store, prometheus.NewRegistry())
	for _, when := range []memstore.When{memstore.Before, memstore.After} {
		fault = memstore.Fault{Err: errors.New("bucket of somebody"), When: when}
		w := ask(t, h, http.MethodPut, "/a", `{"panels":[]}`, "If-None-Match", "*")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.NotContains(t, w.Body.String(), "somebody")
	}
	fault = memstore.Fault{}
	require.Equal(t, http.StatusOK, ask(t, h, http.MethodPut, "/a", `{"panels":[]}`, "If-None-Match", "*").Code)
}

func TestFrameAncestors(t *testing.T) {
	for _, tc := range []struct {
		origins []string
		want    string
	}{
		{nil, "frame-ancestors 'none'"},
		{[]string{"self", "https://wiki.example", "http://*.example:3000"}, "frame-ancestors 'self' https://wiki.example http://*.example:3000"},
		{[]string{"*"}, ""}, {[]string{"wiki.example"}, ""}, {[]string{"https://a; script-src *"}, ""}, {[]string{"https://a b"}, ""}, {[]string{"'none'"}, ""}, {[]string{"https://a/"}, ""},
	} {
		stage, err := pageapp.New(pageapp.Settings{FrameAncestors: tc.origins})(t.Context(), process.Parts{Registry: prometheus.NewRegistry()})
		if tc.want == "" {
			require.ErrorContains(t, err, "web.frame-ancestors: want self, or an origin")
			continue
		}
		require.NoError(t, err)
		for _, r := range stage.Routes() {
			if r.Pattern != "GET /{$}" {
				continue
			}
			w := httptest.NewRecorder()
			r.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?embed", nil))
			require.Regexp(t, regexp.QuoteMeta(tc.want)+"$", w.Header().Get("Content-Security-Policy"))
		}
	}
}

func TestReadLimit(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large.json"), make([]byte, pageapp.MaxBytes+1), 0o600))
	f, err := pageapp.Open(dir)
	require.NoError(t, err)
	_, err = f.Read("large.json")
	require.ErrorContains(t, err, "more than 10485760 bytes")
	require.NoError(t, f.Close())
}
