package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
)

// TestSilences: requests for silences reach the Alertmanager with the credentials of the
// configuration, for callers with the rights to them, within limits.
func TestSilences(t *testing.T) {
	const id = "bd0f4a3c-6bd3-4a2e-9b64-1f0a8a2f6a10"
	var lost atomic.Int32
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch user, password, _ := r.BasicAuth(); {
		case user != "u" || password != "p" || r.Header.Get("X-Scope-OrgID") != "":
			w.WriteHeader(http.StatusTeapot)
		case strings.Contains(string(body), "lost"):
			lost.Add(1)
			panic(http.ErrAbortHandler)
		case r.URL.Query().Get("filter") == "huge":
			_, _ = w.Write(make([]byte, 5<<20))
		case r.URL.Query().Get("filter") == "broken":
			http.Error(w, "out of order", http.StatusUnauthorized)
		case strings.Contains(string(body), "invalid"):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `"bad matcher"`)
		default:
			_, _ = fmt.Fprintf(w, "%q", r.Method+" "+r.URL.String()+" "+string(body))
		}
	})
	am, other := httptest.NewServer(h), httptest.NewServer(h)
	t.Cleanup(am.Close)
	t.Cleanup(other.Close)
	// The address of the first one refuses connections.
	s, _ := monitoring(t, fmt.Sprintf(`
alerting:
  alertmanagers:
    - {path_prefix: /am, basic_auth: {username: u, password: p}, static_configs: [{targets: ["127.0.0.1:1", %q, %q]}]}
`, strings.TrimPrefix(am.URL, "http://"), strings.TrimPrefix(other.URL, "http://")))
	s.Prometheus.Tenant = "team"
	d := auth.Document{Version: auth.Version, Tokens: []auth.Entry{entry(t, "reads", "team", "read"), entry(t, "writes", "team", "read,write"), entry(t, "admin", "team,other", "read,admin")}}
	s.Process.Auth.Tokens = "file:" + writeDocument(t, filepath.Join(t.TempDir(), "tokens.json"), d)
	srv := start(t, s)
	ask := func(token, id, method, path, kind, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, srv.url+"/alertmanager/api/v2/"+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", kind)
		resp, err := (&http.Client{Transport: caller{token, id}}).Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(answer)
	}
	require.Eventually(t, func() bool {
		code, _ := ask("reads", "team", "GET", "silences", "", "")
		return code == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
	const js = "application/json; charset=utf-8"
	for _, tc := range []struct {
		token, tenant, method, path, kind, body string
		code                                    int
		answer                                  string
	}{
		{"reads", "team", "GET", "silences?filter=a%3Db", "", "", 200, `"GET /am/api/v2/silences?filter=a%3Db "`},
		{"admin", "team", "POST", "silences", js, "{}", 200, `"POST /am/api/v2/silences {}"`},
		{"admin", "team", "DELETE", "silence/" + id, "", "", 200, `"DELETE /am/api/v2/silence/` + id + ` "`},
		{"admin", "team", "POST", "silences", js, "invalid", 400, `"bad matcher"`},
		{"admin", "team", "POST", "silences", js, "lost", 502, "EOF"},

		{"reads", "team", "POST", "silences", js, "{}", 403, "admin"},
		{"writes", "team", "POST", "silences", js, "{}", 403, "admin"},
		{"writes", "team", "DELETE", "silence/" + id, "", "", 403, "admin"},
		{"", "team", "GET", "silences", "", "", 401, ""},
		{"admin", "other", "GET", "silences", "", "", 404, `"tenant \"other\" has no Alertmanager: --config.file names`},
		{"admin", "team", "POST", "silences", "text/plain", "{}", 415, `"content type \"text/plain\": want application/json"`},
		{"admin", "team", "POST", "silences", js, strings.Repeat(" ", 64<<10+1), 413, `"the silence has more than 65536 bytes"`},
		{"admin", "team", "DELETE", "silence/..%2Falerts", "", "", 400, `want the UUID of a silence`},
		{"reads", "team", "GET", "silences?filter=broken", "", "", 502, `401 Unauthorized: \"out of order`},
		{"reads", "team", "GET", "silences?filter=huge", "", "", 502, `the answer has more than 4194304 bytes`},
		{"admin", "team", "GET", "alerts", "", "", 404, ""},
	} {
		code, answer := ask(tc.token, tc.tenant, tc.method, tc.path, tc.kind, tc.body)
		require.Equal(t, tc.code, code, "%s %s: %s", tc.method, tc.path, answer)
		require.Contains(t, answer, tc.answer, "%s %s", tc.method, tc.path)
	}
	require.EqualValues(t, 1, lost.Load(), "a silence that may be stored is not stored again")
	am.Close()
	other.Close()
	code, answer := ask("reads", "team", "GET", "silences", "", "")
	require.Equal(t, http.StatusBadGateway, code)
	require.Contains(t, answer, "connection refused")
}
