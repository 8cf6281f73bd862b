package process

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/promlake/promlake/internal/access/tenant"
)

// aliased serves the paths of Amazon Managed Service for Prometheus ("Prometheus-compatible APIs"
// in its user guide), so that its clients need only another host:
//
//	/workspaces/{id}/api/v1/…   is /api/v1/… of the tenant {id}, unless the request names a tenant
//	/api/v1/remote_write        is /api/v1/write
//
// The guards are behind it: they see the other path and the tenant.
func aliased(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.URL.EscapedPath()
		path, id := sent, ""
		if rest, ok := strings.CutPrefix(sent, "/workspaces/"); ok {
			if workspace, below, _ := strings.Cut(rest, "/"); workspace != "" && strings.HasPrefix(below, "api/v1/") {
				path, id = "/"+below, workspace
			}
		}
		if path == "/api/v1/remote_write" {
			path = "/api/v1/write"
		}
		if path != sent {
			r = r.Clone(r.Context())
			// The parts of an escaped path are escaped correctly.
			r.URL.Path, _ = url.PathUnescape(path)
			r.URL.RawPath = path
			if id, _ = url.PathUnescape(id); id != "" && len(r.Header.Values(tenant.Header)) == 0 {
				r.Header.Set(tenant.Header, id)
			}
		}
		next.ServeHTTP(w, r)
	})
}
