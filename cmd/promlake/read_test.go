package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

// TestRead: the command answers on its socket, for each tenant, until its input ends; then it
// succeeds, also with a request under way, and the socket is gone.
func TestRead(t *testing.T) {
	store, socket := filled(t), filepath.Join(shortDir(t), "s")
	in, input := io.Pipe()
	output, out := io.Pipe()
	code := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		code <- run(t.Context(), []string{"read", "--store=" + store, "--socket=" + socket}, flags.Streams{In: in, Out: out, Err: &errs})
		out.Close()
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)

	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	ask := func(tenant, sql string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://store/api/v1/sql?format=csv", strings.NewReader("query="+sql))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("X-Scope-OrgID", tenant)
		return client.Do(req)
	}
	for tenant, want := range map[string]string{"anonymous": "m\n1\n", "other": "m\n2\n"} {
		resp, err := ask(tenant, "SELECT max(value) AS m FROM samples")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, string(body))
	}
	endless, err := ask("anonymous", "SELECT repeat_row FROM range(100000000000), (SELECT 'x' AS repeat_row)")
	require.NoError(t, err)
	require.NoError(t, input.Close())
	_, err = io.Copy(io.Discard, endless.Body)
	require.Error(t, err)
	require.NoError(t, endless.Body.Close())
	client.CloseIdleConnections()
	require.Zero(t, <-code, errs.String())
	require.NoFileExists(t, socket)
}

// TestReadErrors: the command fails before it serves.
func TestReadErrors(t *testing.T) {
	for _, args := range [][]string{
		{"--store=file://" + filepath.Join(t.TempDir(), "none"), "--socket=" + filepath.Join(shortDir(t), "s")},
		{"--store=" + filled(t), "--socket=" + filepath.Join(shortDir(t), "none", "s")},
		{"--store=" + filled(t)},
	} {
		var out, errs bytes.Buffer
		require.NotZero(t, run(t.Context(), append([]string{"read"}, args...), flags.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}))
		require.Empty(t, out.String())
		require.NotEmpty(t, errs.String())
	}
}

// shortDir returns a directory for sockets, whose paths have at most about 100 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "read-*")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
