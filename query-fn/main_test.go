package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

func TestVariables(t *testing.T) {
	t.Setenv("PROMLAKE_LISTEN", "127.0.0.1:1")
	t.Setenv("PROMLAKE_STORE", "s3://bucket")
	t.Setenv("PROMLAKE_QUERY_TIMEOUT", "7s")
	t.Setenv("PROMLAKE_LAMBDA_STREAMING", "false")
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte("query.max-series: 7\nquery.timeout: 9s\n"), 0o600))
	t.Setenv("PROMLAKE_SETTINGS_FILE", file)
	c := newCLI()
	k, err := flags.NewParser(program, description, c)
	require.NoError(t, err)
	_, err = k.Parse(nil)
	require.NoError(t, err)

	want := newCLI()
	require.True(t, want.Lambda.Streaming)
	want.Query.Query.MaxSeries = 7
	want.Lambda.Streaming = false
	want.Process.Listen, want.Process.Store, want.Query.Query.Timeout = "127.0.0.1:1", "s3://bucket", 7*time.Second
	require.Equal(t, want, c)
}
