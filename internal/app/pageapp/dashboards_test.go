package pageapp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/pageapp"
	"github.com/promlake/promlake/internal/app/process"
)

// folder has two dashboards, a broken one, and files that are none. A ConfigMap of Kubernetes has
// the links of linked.json.
func folder(t *testing.T) pageapp.Folder {
	t.Helper()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside.json")
	for name, content := range map[string]string{
		"a.json": `{"title":"First","tags":["x"],"panels":[]}`, "team/b c.json": `{"dashboard":{"title":"Second"}}`, "broken.json": `{"title":`,
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
		{Name: "team/b c.json", Title: "Second"},
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

func TestHandlers(t *testing.T) {
	f := folder(t)
	mux := http.NewServeMux()
	mux.Handle("GET /d", pageapp.ListHandler(f))
	mux.Handle("GET /d/{name...}", pageapp.ReadHandler(f))
	for _, tc := range []struct {
		path, body string
		code       int
	}{
		{"/d/a.json", `{"status":"success","data":{"title":"First","tags":["x"],"panels":[]}}`, 200},
		{"/d/team/b%20c.json", `{"status":"success","data":{"dashboard":{"title":"Second"}}}`, 200},
		{"/d/none.json", `{"status":"error","errorType":"not_found","error":"no such dashboard: \"none.json\""}`, 404},
		{"/d/.hidden.json", `{"status":"error","errorType":"not_found","error":"no such dashboard: \".hidden.json\""}`, 404},
		{"/d/readme.txt", `{"status":"error","errorType":"not_found","error":"no such dashboard: \"readme.txt\""}`, 404},
		{"/d/team", `{"status":"error","errorType":"not_found","error":"no such dashboard: \"team\""}`, 404},
		{"/d/broken.json", `{"status":"error","errorType":"internal","error":"dashboard \"broken.json\" is not JSON"}`, 500},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.path, nil))
		require.Equal(t, tc.code, w.Code, tc.path)
		require.JSONEq(t, tc.body, w.Body.String(), tc.path)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/d", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `{"name":"a.json","title":"First","tags":["x"]}`)
	require.NotContains(t, w.Body.String(), "Secret")
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
		stage, err := pageapp.New(pageapp.Settings{FrameAncestors: tc.origins})(t.Context(), process.Parts{})
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
