package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query/api"
)

// TestPagesOfOthersReadNothing sends requests as a page of another origin does: the browser hides
// the answer unless the flag lists the origin.
func TestPagesOfOthersReadNothing(t *testing.T) {
	const page = "https://dashboards.example"
	for origins, want := range map[string]string{"": "", "https://other.example": "", "https://.*[.]example": page, ".*": page} {
		s := testSettings()
		s.CORSOrigin = origins
		if origins == "" {
			s.CORSOrigin = settings.Default[api.Settings]().CORSOrigin
		}
		h, err := api.New(s, withoutStorage(t), nil, time.Now, slog.New(slog.DiscardHandler), nil)
		require.NoError(t, err)
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			for _, path := range []string{"/api/v1/query?query=1", "/api/v1/query?query=("} {
				r := httptest.NewRequest(method, path, nil)
				r.Header.Set("Origin", page)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if want == "" || method == http.MethodGet {
					require.Equal(t, want, w.Header().Get("Access-Control-Allow-Origin"), "%s %s %q", method, path, origins)
				}
			}
		}
	}
}
