package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

func TestCheckReady(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/-/ready" {
			code = http.StatusNotFound
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte("the store is away\n"))
	}))
	defer server.Close()
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	check := func(args ...string) (int, string) {
		var out bytes.Buffer
		return run(t.Context(), append([]string{"check", "ready"}, args...), flags.Streams{Out: &out, Err: &out}), out.String()
	}
	for _, args := range [][]string{{server.URL}, {server.URL + "/"}, {"--listen", "127.0.0.1:" + port}, {"--listen", ":" + port}, {"--listen", "0.0.0.0:" + port}} {
		got, text := check(args...)
		require.Equal(t, "the store is away\n", text, args)
		require.Zero(t, got)
	}
	t.Setenv("PROMLAKE_LISTEN", ":"+port)
	code = http.StatusServiceUnavailable
	got, text := check()
	require.Equal(t, 1, got)
	require.Contains(t, text, "503 Service Unavailable: the store is away")
	server.Close()
	got, text = check()
	require.Equal(t, 1, got)
	require.Contains(t, text, "connection refused")
}
