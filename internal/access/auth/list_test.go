package auth_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
)

func list(g *auth.Guard) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	g.List().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/status/tokens", nil))
	return w
}

// TestList: the list has names, rights and comments, and follows the document; it has neither
// tokens nor their hashes.
func TestList(t *testing.T) {
	text := func(entries ...auth.Entry) []byte {
		b, err := auth.Document{Version: auth.Version, Tokens: entries}.Text()
		require.NoError(t, err)
		return b
	}
	entry := func(token, tenant, comment string, access ...string) auth.Entry {
		e, err := auth.NewEntry(token, []string{tenant}, access, comment)
		require.NoError(t, err)
		return e
	}
	b, a := entry("token-b", "b", "", "read"), entry("token-a", "a", "of the <agents>", "write", "read")
	p, err := auth.NewPrincipalEntry("arn:aws:iam::123456789012:role/x", []string{"c"}, []string{"read"}, "")
	require.NoError(t, err)
	first := text(p, b, a)
	want := strings.NewReplacer("%A", a.SHA256[:8], "%B", b.SHA256[:8]).Replace(`{"status":"success","data":{"required":true,"tokens":[
		{"id":"%A","tenants":["a"],"access":["write","read"],"comment":"of the <agents>"},
		{"id":"%B","tenants":["b"],"access":["read"]},
		{"principal":"arn:aws:iam::123456789012:role/x","tenants":["c"],"access":["read"]}]}}`)

	file, path, _ := newGuard(t, first, io.Discard)
	remote := newParameter(first)
	for name, g := range map[string]*auth.Guard{"file": file, "remote": remote.guard(&bytes.Buffer{})} {
		w := list(g)
		require.Equal(t, http.StatusOK, w.Code, name)
		require.JSONEq(t, want, w.Body.String(), name)
		require.NotContains(t, w.Body.String(), a.SHA256[:9], name)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
	require.NoError(t, os.WriteFile(path, text(b), 0o600))
	require.NotContains(t, list(file).Body.String(), "agents")
}

// TestListWithoutTokens: requests need no token, or the document cannot be read.
func TestListWithoutTokens(t *testing.T) {
	require.JSONEq(t, `{"status":"success","data":{"required":false,"tokens":[]}}`, list(nil).Body.String())
	remote := newParameter([]byte("{"))
	w := list(remote.guard(&bytes.Buffer{}))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "the document of tokens cannot be read, try again")
}
