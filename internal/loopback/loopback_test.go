package loopback_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/loopback"
)

func TestTransport(t *testing.T) {
	client := &http.Client{Transport: loopback.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		w.Header().Set("X-Method", r.Method)
		if r.URL.Path != "/silent" {
			w.WriteHeader(http.StatusAccepted)
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "got "+string(body))
		}
	}))}
	resp, err := client.Post("http://anywhere/x", "text/plain", strings.NewReader("this"))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
	require.Equal(t, "POST", resp.Header.Get("X-Method"))
	require.Equal(t, "got this", string(body))

	resp, err = client.Get("http://anywhere/silent")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://anywhere/x", nil)
	require.NoError(t, err)
	_, err = client.Do(req)
	require.ErrorIs(t, err, context.Canceled)
}

// TestBrokenOff: a handler that breaks its answer off gives an error and no answer.
func TestBrokenOff(t *testing.T) {
	client := &http.Client{Transport: loopback.Transport(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	}))}
	_, err := client.Get("http://anywhere/x")
	require.ErrorContains(t, err, "the answer was broken off")
}
