package process

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
)

// routed is a stage whose routes answer with their path and tenant.
type routed struct{ Idle }

func (routed) Routes() []Route {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.EscapedPath()+" of "+r.Header.Get(tenant.Header))
	})
	return []Route{{Pattern: "/api/v1/write", Access: auth.Write, Handler: h}, {Pattern: "/api/v1/", Access: auth.Read, Handler: h}}
}

func TestAliases(t *testing.T) {
	reg := prometheus.NewRegistry()
	site, err := auth.NewSite(auth.SiteSettings{}, false, reg)
	require.NoError(t, err)
	h := routes(reg, site, nil, stages{routed{}})
	for _, tc := range []struct {
		path, tenant string // tenant "-": no header
		want         string // "": not found, or moved
	}{
		{"/api/v1/query", "-", "/api/v1/query of "},
		{"/api/v1/remote_write", "-", "/api/v1/write of "},
		{"/workspaces/ws-1/api/v1/remote_write", "-", "/api/v1/write of ws-1"},
		{"/workspaces/ws-1/api/v1/query_range?query=up", "-", "/api/v1/query_range of ws-1"},
		{"/workspaces/ws-1/api/v1/query", "team-a", "/api/v1/query of team-a"},
		{"/workspaces/ws-1/api/v1/query", "", "/api/v1/query of "},
		{"/workspaces/a%2Fb/api/v1/query", "-", "/api/v1/query of a/b"}, // which no tenant is named
		{"/workspaces/ws%2D1/api/v1/label/U__http_2e_status%2Fcode/values", "-", "/api/v1/label/U__http_2e_status%2Fcode/values of ws-1"},
		{"/workspaces/ws-1/api/v1/label/a%20b/values", "-", "/api/v1/label/a%20b/values of ws-1"},
		{"/workspaces/ws-1/workspaces/ws-2/api/v1/query", "-", ""},
		{"/workspaces/ws-1/alertmanager/api/v2/alerts", "-", ""},
		{"/workspaces/ws-1/metrics", "-", ""},
		{"/workspaces/ws-1/api/v1", "-", ""},
		{"/workspaces//api/v1/query", "-", ""},
		{"/workspaces/api/v1/query", "-", ""},
		{"/prometheus/workspaces/ws-1/api/v1/query", "-", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, tc.path, nil)
		if tc.tenant != "-" {
			r.Header.Set(tenant.Header, tc.tenant)
		}
		sent := r.URL.String()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, sent, r.URL.String(), "the request of the server stays as it is")
		if tc.want == "" {
			require.GreaterOrEqual(t, w.Code, 300, tc)
			continue
		}
		require.Equal(t, http.StatusOK, w.Code, tc)
		require.Equal(t, tc.want, w.Body.String(), tc)
	}
}
