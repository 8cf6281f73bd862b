package auth_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
)

// TestAPIKey: the API key is a token where a route says so, and reaches no handler.
func TestAPIKey(t *testing.T) {
	g, _, _ := newGuard(t, document(t), io.Discard)
	open := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Empty(t, r.Header.Values("DD-API-KEY"))
		require.NotContains(t, r.URL.String()+r.RequestURI, "api_key")
		require.Equal(t, "1", r.URL.Query().Get("other"))
		seen(w, r)
	})
	h := g.APIKey(g.Protect(auth.Write, open))
	for name, tc := range map[string]struct {
		query   string
		headers [][2]string
		code    int
		body    string
	}{
		"header":                         {"", [][2]string{{"DD-API-KEY", "a-all"}}, 200, "a"},
		"parameter":                      {"&api_key=a-all", nil, 200, "a"},
		"both, the same":                 {"&api_key=a-all", [][2]string{{"Dd-Api-Key", "a-all"}}, 200, "a"},
		"a tenant":                       {"&api_key=ab-write", [][2]string{{"X-Scope-OrgID", "b"}}, 200, "b"},
		"two keys":                       {"&api_key=a-read", [][2]string{{"DD-API-KEY", "a-all"}}, 401, "malformed"},
		"two headers":                    {"", [][2]string{{"DD-API-KEY", "a-all"}, {"DD-API-KEY", "a-read"}}, 401, "malformed"},
		"empty":                          {"&api_key=", nil, 401, "malformed"},
		"unknown":                        {"&api_key=b", nil, 401, "the token is not known"},
		"may not write":                  {"&api_key=a-read", nil, 403, `lacks access "write"`},
		"Authorization counts":           {"&api_key=b", [][2]string{{"Authorization", "Bearer a-all"}}, 200, "a"},
		"Authorization counts, if wrong": {"&api_key=a-all", [][2]string{{"Authorization", "Bearer b"}}, 401, "the token is not known"},
		"none":                           {"", nil, 401, "requires a token"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/?other=1"+tc.query, nil)
			for _, header := range tc.headers {
				r.Header.Add(header[0], header[1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, tc.code, w.Code, w.Body)
			require.Contains(t, w.Body.String(), tc.body)
		})
	}
	r := httptest.NewRequest(http.MethodPost, "/?api_key=a-all", nil)
	r.Header.Set("DD-API-KEY", "a-all")
	w := httptest.NewRecorder()
	g.Protect(auth.Write, seen).ServeHTTP(w, r)
	require.Equal(t, http.StatusUnauthorized, w.Code, "other routes do not take it")

	var none *auth.Guard
	w = httptest.NewRecorder()
	none.APIKey(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { require.Empty(t, r.Header.Get("Authorization")) })).ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, "without tokens the key is not read")
}
