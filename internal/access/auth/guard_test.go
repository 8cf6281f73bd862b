package auth_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
)

// grants are the entries of the test's document.
var grants = []struct {
	token           string
	tenants, access []string
}{
	{"a-all", []string{"a"}, []string{"read", "write", "admin"}},
	{"a-read", []string{"a"}, []string{"read"}},
	{"ab-write", []string{"a", "b"}, []string{"write"}},
	{"home-read", []string{"b", "anonymous"}, []string{"read"}},
	{"any-read", []string{"*"}, []string{"read"}},
	{"any-admin", []string{"*"}, []string{"admin"}},
}

func document(t *testing.T) []byte {
	t.Helper()
	d := auth.Document{Version: auth.Version}
	for _, g := range grants {
		e, err := auth.NewEntry(g.token, g.tenants, g.access, "")
		require.NoError(t, err)
		d.Tokens = append(d.Tokens, e)
	}
	text, err := d.Text()
	require.NoError(t, err)
	return text
}

// newGuard returns a guard with a document in a file, and the file's path.
func newGuard(t testing.TB, text []byte, log io.Writer) (*auth.Guard, string, *prometheus.Registry) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	reg := prometheus.NewRegistry()
	g, err := auth.New(auth.Settings{Tokens: "file:" + file}, reg, slog.New(slog.NewTextHandler(log, nil)), time.Now)
	require.NoError(t, err)
	return g, file, reg
}

// seen is a handler that answers with the tenant of the request.
var seen = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" || len(r.Header.Values(tenant.Header)) != 1 {
		http.Error(w, fmt.Sprintf("handler got the headers %v", r.Header), http.StatusTeapot)
		return
	}
	_, _ = io.WriteString(w, r.Header.Get(tenant.Header))
})

func TestProtect(t *testing.T) {
	g, _, reg := newGuard(t, document(t), io.Discard)
	const read, write, admin, operate = auth.Read, auth.Write, auth.Admin, auth.Operate
	for name, tc := range map[string]struct {
		access auth.Access
		token  string   // "": none
		tenant []string // values of the header
		code   int
		body   string // contained
	}{
		"the token's one tenant":          {read, "a-read", nil, 200, "a"},
		"the same, named":                 {read, "a-read", []string{"a"}, 200, "a"},
		"the same, named empty":           {read, "a-read", []string{""}, 200, "a"},
		"another tenant":                  {read, "a-read", []string{"b"}, 403, `the token is not for tenant \"b\"`},
		"the default, named":              {read, "a-read", []string{"anonymous"}, 403, `the token is not for tenant \"anonymous\"`},
		"two tenants":                     {read, "a-read", []string{"a", "a"}, 400, "carries 2 X-Scope-OrgID headers"},
		"two in one header":               {read, "a-read", []string{"a,b"}, 400, "unsupported character ','"},
		"no tenant's name":                {read, "any-read", []string{"../a"}, 400, "unsupported character"},
		"any tenant":                      {read, "any-read", []string{"zebra"}, 200, "zebra"},
		"any tenant, none named":          {read, "any-read", nil, 200, "anonymous"},
		"one of several":                  {write, "ab-write", []string{"b"}, 200, "b"},
		"one of several, none named":      {write, "ab-write", nil, 403, "for the tenants a, b: name one of them in the header X-Scope-OrgID"},
		"not one of several":              {write, "ab-write", []string{"c"}, 403, `not for tenant "c"`},
		"the default of several":          {read, "home-read", nil, 200, "anonymous"},
		"several to read":                 {read, "home-read", []string{"b|anonymous"}, 200, "anonymous|b"},
		"one of them is another's":        {read, "home-read", []string{"a|b"}, 403, `the token is not for tenant \"a\"`},
		"several to write":                {write, "ab-write", []string{"a|b"}, 400, "unsupported character '|'"},
		"lacks write":                     {write, "a-read", nil, 403, `lacks access "write"`},
		"write does not imply read":       {read, "ab-write", []string{"a"}, 403, `lacks access \"read\"`},
		"admin does not imply read":       {read, "any-admin", nil, 403, `lacks access \"read\"`},
		"read does not imply admin":       {admin, "a-read", nil, 403, `lacks access \"admin\"`},
		"deletes what is its tenant's":    {admin, "a-all", nil, 200, "a"},
		"deletes of another":              {admin, "a-all", []string{"b"}, 403, "not for tenant"},
		"a tenant's admin is no operator": {operate, "a-all", nil, 403, "concerns all tenants, and the token is only for a"},
		"a reader is no operator":         {operate, "any-read", nil, 403, `lacks access \"admin\"`},
		"operator":                        {operate, "any-admin", nil, 200, "anonymous"},
		"no token to read":                {read, "", []string{"a"}, 401, `{"status":"error","errorType":"unauthorized","error":"this server requires a token`},
		"no token to write":               {write, "", nil, 401, "this server requires a token"},
		"unknown token":                   {read, "a-rea", nil, 401, "the token is not known"},
		"a sum for a token":               {read, auth.SumOf("a-read"), nil, 401, "the token is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			for scheme, authorize := range map[string]func(*http.Request){
				"bearer": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+tc.token) },
				"basic":  func(r *http.Request) { r.SetBasicAuth("anybody", tc.token) },
			} {
				r := httptest.NewRequest(http.MethodPost, "/", nil)
				for _, v := range tc.tenant {
					r.Header.Add(tenant.Header, v)
				}
				if tc.token != "" {
					authorize(r)
				}
				w := httptest.NewRecorder()
				g.Protect(tc.access, seen).ServeHTTP(w, r)
				require.Equal(t, tc.code, w.Code, "%s: %s", scheme, w.Body)
				require.Contains(t, w.Body.String(), tc.body, scheme)
				require.Equal(t, tc.code == 401, len(w.Header().Values("WWW-Authenticate")) == 2)
				if tc.code == 200 {
					require.Equal(t, tc.body, w.Body.String())
				} else {
					require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
					want := "application/json"
					if tc.access == write {
						want = "text/plain; charset=utf-8"
					}
					require.Equal(t, want, w.Header().Get("Content-Type"))
				}
			}
		})
	}
	require.NoError(t, testutil.GatherAndCompare(reg, bytes.NewBufferString(`
# HELP promlake_auth_requests_total Requests to protected handlers by the result of authorization: ok, absent, malformed, unknown, access and tenant (not allowed by the token), unavailable (no document of tokens could be read).
# TYPE promlake_auth_requests_total counter
promlake_auth_requests_total{result="absent"} 4
promlake_auth_requests_total{result="access"} 12
promlake_auth_requests_total{result="ok"} 20
promlake_auth_requests_total{result="tenant"} 20
promlake_auth_requests_total{result="unknown"} 4
`), "promlake_auth_requests_total"))
}

// TestProtectPrincipals: in a function, the identity that AWS has checked decides, by its own entry
// or else by that of its account. Nothing that a request itself carries counts beside it.
func TestProtectPrincipals(t *testing.T) {
	const aws = "arn:aws:iam::123456789012:"
	const session = "arn:aws:sts::123456789012:assumed-role/"
	token, err := auth.NewEntry("a-all", []string{"a"}, []string{"read", "write", "admin"}, "")
	require.NoError(t, err)
	d := auth.Document{Version: auth.Version, Tokens: []auth.Entry{token}}
	for _, e := range []auth.Entry{
		{Principal: aws + "root", Tenants: []string{"a", "b"}, Access: []string{"read"}},
		{Principal: aws + "role/team/writer", Tenants: []string{"a"}, Access: []string{"write"}},
		{Principal: aws + "user/ops", Tenants: []string{"*"}, Access: []string{"admin"}},
		{Principal: "arn:aws:iam::210987654321:role/writer", Tenants: []string{"c"}, Access: []string{"write"}},
	} {
		e, err := auth.NewPrincipalEntry(e.Principal, e.Tenants, e.Access, "")
		require.NoError(t, err)
		d.Tokens = append(d.Tokens, e)
	}
	text, err := d.Text()
	require.NoError(t, err)
	file, _, reg := newGuard(t, text, io.Discard)
	remote := newParameter(text).guard(&bytes.Buffer{})
	const read, write, admin, operate = auth.Read, auth.Write, auth.Admin, auth.Operate
	for name, tc := range map[string]struct {
		access auth.Access
		arn    string
		tenant string // "": no header
		code   int
		body   string // contained
	}{
		"a role":                        {write, session + "writer/s", "", 200, "a"},
		"a role, its tenant named":      {write, session + "writer/other-session", "a", 200, "a"},
		"a role, another tenant":        {write, session + "writer/s", "b", 403, "the principal " + aws + `role/team/writer is not for tenant "b"`},
		"a role has no account's entry": {read, session + "writer/s", "a", 403, "the principal " + aws + `role/team/writer lacks access \"read\"`},
		"a role of the account":         {read, session + "reader/s", "b", 200, "b"},
		"one of several, none named":    {read, session + "reader/s", "", 403, "the principal " + aws + "root is for the tenants a, b: name one"},
		"the account's root":            {read, aws + "root", "a", 200, "a"},
		"a user, with a path":           {admin, aws + "user/staff/ops", "zebra", 200, "zebra"},
		"a user who operates":           {operate, aws + "user/ops", "", 200, "anonymous"},
		"a role with a user's name":     {admin, session + "ops/s", "a", 403, aws + "root lacks access"},
		"the same name elsewhere":       {write, "arn:aws:sts::210987654321:assumed-role/writer/s", "", 200, "c"},
		"another account":               {read, "arn:aws:sts::111111111111:assumed-role/writer/s", "a", 403, "the document of tokens has no entry for the principal arn:aws:sts::111111111111:assumed-role/writer/s"},
		"another partition":             {write, "arn:aws-cn:sts::123456789012:assumed-role/writer/s", "a", 403, "no entry for the principal arn:aws-cn:"},
		"no ARN":                        {read, "writer", "a", 403, "no entry for the principal writer"},
		"a sum for an ARN":              {read, auth.SumOf("a-all"), "a", 403, "no entry for the principal"},
	} {
		t.Run(name, func(t *testing.T) {
			for from, g := range map[string]*auth.Guard{"file": file, "remote": remote} {
				for _, authorization := range []string{"", "AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host, Signature=x", "Bearer a-all", "Bearer wrong"} {
					r := httptest.NewRequest(http.MethodPost, "/", nil)
					r = r.WithContext(auth.WithPrincipal(r.Context(), tc.arn))
					for header, v := range map[string]string{"Authorization": authorization, tenant.Header: tc.tenant} {
						if v != "" {
							r.Header.Set(header, v)
						}
					}
					w := httptest.NewRecorder()
					g.Protect(tc.access, seen).ServeHTTP(w, r)
					require.Equal(t, tc.code, w.Code, "%s, %q: %s", from, authorization, w.Body)
					require.Contains(t, w.Body.String(), tc.body)
				}
			}
		})
	}
	for name, r := range map[string]*http.Request{"no identity": httptest.NewRequest(http.MethodGet, "/", nil), "a principal as a token": httptest.NewRequest(http.MethodGet, "/", nil)} {
		r = r.WithContext(auth.WithPrincipal(r.Context(), "")) // as an event without one
		if name != "no identity" {
			r.Header.Set("Authorization", "Bearer "+aws+"root")
		}
		w := httptest.NewRecorder()
		file.Protect(read, seen).ServeHTTP(w, r)
		require.Equal(t, http.StatusUnauthorized, w.Code, name)
	}
	require.Equal(t, 200, ask(file, read, "a-all"), "tokens of the same document hold")
	n, err := testutil.GatherAndCount(reg, "promlake_auth_requests_total")
	require.NoError(t, err)
	require.Equal(t, 5, n, "ok, access, tenant, unknown, absent")
}

func TestProtectChallenges(t *testing.T) {
	g, _, _ := newGuard(t, document(t), io.Discard)
	w := httptest.NewRecorder()
	g.Protect(auth.Read, seen).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, []string{`Bearer realm="promlake"`, `Basic realm="promlake"`}, w.Header().Values("WWW-Authenticate"))
}

func TestProtectLetsPreflightsThroughBare(t *testing.T) {
	g, _, _ := newGuard(t, document(t), io.Discard)
	h := g.Protect(auth.Read, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Empty(t, body)
		require.Empty(t, r.URL.RawQuery)
		require.Equal(t, "/api/v1/query", r.RequestURI)
		require.Equal(t, http.Header{
			"Origin": {"https://grafana"}, "Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Headers": {"authorization"},
		}, r.Header)
		w.WriteHeader(http.StatusNoContent)
	}))
	ask := func(method string, header http.Header) int {
		r := httptest.NewRequest(method, "/api/v1/query?query=up", bytes.NewBufferString("query=up"))
		r.Header = header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	preflight := http.Header{
		"Origin": {"https://grafana"}, "Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Headers": {"authorization"},
		tenant.Header: {"a"}, "Cookie": {"x"},
	}
	require.Equal(t, http.StatusNoContent, ask(http.MethodOptions, preflight))
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, preflight), "not OPTIONS")
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodOptions, http.Header{"Origin": {"https://grafana"}}), "no preflight")
}

func TestOff(t *testing.T) {
	g, err := auth.New(auth.Settings{}, nil, nil, nil)
	require.NoError(t, err)
	require.Nil(t, g)
	require.Empty(t, g.OwnToken())
	w := httptest.NewRecorder()
	g.Protect(auth.Operate, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusAccepted, w.Code)
}

func TestOwnToken(t *testing.T) {
	g, _, _ := newGuard(t, []byte(`{"version":1,"tokens":[]}`), io.Discard)
	other, _, _ := newGuard(t, []byte(`{"version":1,"tokens":[]}`), io.Discard)
	for _, access := range []auth.Access{auth.Read, auth.Write, auth.Admin, auth.Operate} {
		require.Equal(t, http.StatusOK, ask(g, access, g.OwnToken()))
		require.Equal(t, http.StatusUnauthorized, ask(g, access, other.OwnToken()))
	}
}

// answer returns the answer to a request.
func answer(g *auth.Guard, access auth.Access, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	g.Protect(access, seen).ServeHTTP(w, r)
	return w
}

// ask returns the status of a request.
func ask(g *auth.Guard, access auth.Access, token string) int { return answer(g, access, token).Code }

func TestSettingsValidate(t *testing.T) {
	for _, good := range []string{"", "file:tokens.json", "ssm:/promlake/prod/tokens"} {
		require.NoError(t, auth.Settings{Tokens: good}.Validate(), good)
	}
	for _, bad := range []string{"file:", "ssm:", "tokens.json", "{}"} {
		require.ErrorContains(t, auth.Settings{Tokens: bad}.Validate(), "auth.tokens: want file:PATH or ssm:NAME, got", bad)
	}
}
