package signed

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndpoint(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	for _, tc := range []struct{ region, all, ssm, want string }{
		{"eu-central-1", "", "", "https://ssm.eu-central-1.amazonaws.com"},
		{"us-gov-west-1", "", "", "https://ssm.us-gov-west-1.amazonaws.com"},
		{"cn-north-1", "", "", "https://ssm.cn-north-1.amazonaws.com.cn"},
		{"us-east-1", "http://127.0.0.1:4566", "", "http://127.0.0.1:4566"},
		{"us-east-1", "http://127.0.0.1:4566", "http://127.0.0.1:4567/", "http://127.0.0.1:4567"},
	} {
		t.Setenv("AWS_REGION", tc.region)
		t.Setenv("AWS_ENDPOINT_URL", tc.all)
		t.Setenv("AWS_ENDPOINT_URL_SSM", tc.ssm)
		c := &Client{Service: "ssm"}
		cfg, err := c.open(t.Context())
		require.NoError(t, err)
		require.Equal(t, tc.want, c.endpoint(cfg))
	}
	cfg, err := (&Client{Region: "eu-west-1"}).open(t.Context())
	require.NoError(t, err)
	require.Equal(t, "eu-west-1", cfg.Region)
	require.Equal(t, "http://here", (&Client{Service: "ssm", Endpoint: "http://here/"}).endpoint(cfg))
	t.Setenv("AWS_REGION", "")
	_, err = (&Client{}).open(t.Context())
	require.ErrorContains(t, err, "no region, set AWS_REGION")
}

// TestRepeats: a request that may arrive twice is not lost with a connection that the service has
// closed while nobody used it.
func TestRepeats(t *testing.T) {
	seen := map[string]bool{} // by connection
	var keys []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		keys = append(keys, r.Header.Values("Idempotency-Key")...)
		if seen[r.RemoteAddr] {
			panic(http.ErrAbortHandler)
		}
		seen[r.RemoteAddr] = true
	}))
	defer srv.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")
	for _, repeats := range []bool{true, false} {
		c := &Client{Service: "ssm", Region: "us-east-1", Endpoint: srv.URL, Repeats: repeats}
		post := func() error {
			resp, err := c.Post(t.Context(), "/", nil, []byte("x"))
			if err == nil {
				require.NoError(t, resp.Body.Close())
			}
			return err
		}
		require.NoError(t, post())
		if err := post(); repeats {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "request to AWS: ")
		}
	}
	require.Len(t, seen, 3)
	require.Empty(t, keys)
}
