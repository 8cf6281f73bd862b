package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestServe(t *testing.T) {
	h := serve(fstest.MapFS{
		"index.html":     {Data: []byte("<!doctype html>")},
		"assets/page.js": {Data: []byte("export {}")},
	}, "https://wiki.example", "https://*.example.org")
	get := func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, tc := range []struct {
		path, kind string
		code       int
	}{
		{"/", "text/html; charset=utf-8", http.StatusOK},
		{"/assets/page.js", "text/javascript; charset=utf-8", http.StatusOK},
		{"/assets/other.js", "text/plain; charset=utf-8", http.StatusNotFound},
		{"/assets/", "text/plain; charset=utf-8", http.StatusNotFound},
		{"/assets/../../web.go", "text/plain; charset=utf-8", http.StatusNotFound},
	} {
		w := get(tc.path)
		require.Equal(t, tc.code, w.Code, tc.path)
		require.Equal(t, tc.kind, w.Header().Get("Content-Type"), tc.path)
		require.Equal(t, policy+"'none'", w.Header().Get("Content-Security-Policy"), tc.path)
		require.NotContains(t, policy, "unsafe")
	}
	require.Equal(t, policy+"https://wiki.example https://*.example.org", get("/?embed").Header().Get("Content-Security-Policy"))
	tag := get("/").Header().Get("ETag")
	require.Equal(t, http.StatusNotModified, get("/", "If-None-Match", tag).Code)
	require.NotEqual(t, tag, get("/assets/page.js").Header().Get("ETag"))
	require.Equal(t, "gzip", get("/assets/page.js", "Accept-Encoding", "gzip").Header().Get("Content-Encoding"))
}

// TestServeUnbuilt: a binary whose page was not built answers with that error and how to build the
// page.
func TestServeUnbuilt(t *testing.T) {
	w := httptest.NewRecorder()
	serve(fstest.MapFS{".gitkeep": {}}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?embed", nil))
	require.Equal(t, policy+"'none'", w.Header().Get("Content-Security-Policy"))
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, w.Body.String(), "make build")
}
