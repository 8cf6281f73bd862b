package functions

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// TestPushPaths: an HTTP API decodes the path of a push, so that a slash in a value must be encoded
// in base64. A function's own URL takes both forms, which name the same group.
func TestPushPaths(t *testing.T) {
	store := t.TempDir()
	ingest := lambdatest.Start(t, emulator.Settings{
		Path: programs["ingest-fn"], Name: "ingest-fn", Env: []string{"PROMLAKE_STORE=file://" + store, "PROMLAKE_INGEST_MODE=direct"},
	})
	api := httptest.NewServer(&emulator.Gateway{Routes: map[string]emulator.Invoker{"PUT /metrics/{proxy+}": ingest, "DELETE /metrics/{proxy+}": ingest}})
	t.Cleanup(api.Close)
	own := httptest.NewServer(&emulator.URL{Function: ingest})
	t.Cleanup(own.Close)
	for _, tc := range []struct {
		method, url string
		want        int
	}{
		{"PUT", api.URL + "/metrics/job/a%2Fb", 400},
		{"PUT", api.URL + "/metrics/job@base64/YS9i", 200},
		{"PUT", own.URL + "/metrics/job/a%2Fb", 200},
		{"PUT", own.URL + "/metrics/job@base64/YS9i", 200},
		{"DELETE", api.URL + "/metrics/job@base64/YS9i", 202},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, strings.NewReader("files 1\n"))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tc.want, resp.StatusCode, tc)
	}
	states, err := os.ReadDir(filepath.Join(store, "v1/anonymous/pushes"))
	require.NoError(t, err)
	require.Len(t, states, 1)
}
