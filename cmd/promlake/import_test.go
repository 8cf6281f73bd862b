package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// invoke runs a command line.
func invoke(t *testing.T, args ...string) (out, errs string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(t.Context(), args, flags.Streams{Out: &o, Err: &e})
	return o.String(), e.String(), status
}

func TestImport(t *testing.T) {
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	s := promblocktest.Series{Labels: labels.FromStrings("__name__", "up")}
	for i := range int64(10) {
		s.Samples = append(s.Samples, promblocktest.Sample{Time: 1767225600000 + i*60_000, V: float64(i)})
	}
	promblocktest.Write(t, dir, 1767225600000, 1767229200000, []promblocktest.Series{s})

	out, errs, status := invoke(t, "import", "tsdb", dir, "--store", store, "--dry-run")
	require.Zero(t, status, errs)
	require.Contains(t, out, "to import: samples  about 10\n")
	require.NoDirExists(t, store, "a dry run writes nothing")

	out, errs, status = invoke(t, "import", "tsdb", dir, "--store", store)
	require.Zero(t, status, errs)
	require.Contains(t, out, "samples written  10\n")
	out, _, status = invoke(t, "query", "--store", store, "--time", "1767226140", "sum_over_time(up[10m])")
	require.Zero(t, status)
	require.Contains(t, out, "45")

	out, _, status = invoke(t, "import", "tsdb", dir, "--store", store)
	require.Zero(t, status)
	require.Contains(t, out, "samples written          0\n")

	for _, tc := range []struct{ args, want string }{
		{t.TempDir(), "has no block: want a directory with meta.json"},
		{filepath.Join(dir, "missing"), "no such file or directory"},
	} {
		_, errs, status = invoke(t, "import", "tsdb", tc.args, "--store", store)
		require.NotZero(t, status)
		require.Contains(t, errs, tc.want)
	}
	_, errs, status = invoke(t, "import", "tsdb", dir, "--store", store, "--memory-limit", "1MiB")
	require.NotZero(t, status)
	require.Contains(t, errs, "raise it")
	_, errs, status = invoke(t, "import", "tsdb", dir, "--store", store, "--tenant", "a/b")
	require.NotZero(t, status)
	require.Contains(t, errs, "a/b")
}

func TestImportPrometheus(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--url", "http://127.0.0.1:1", "--start", "yesterday"}, `--start "yesterday": want now-1h, RFC 3339 or seconds since 1970`},
		{[]string{"--url", "http://127.0.0.1:1", "--start", "1", "--end", "0"}, "want a start before the end"},
		{[]string{"--url", "127.0.0.1:1", "--start", "1"}, "want the http:// or https:// address of a server"},
		{[]string{"--start", "1"}, "missing flags: --url"},
	} {
		_, errs, status := invoke(t, append([]string{"import", "prometheus", "--store", store}, tc.args...)...)
		require.NotZero(t, status)
		require.Contains(t, errs, tc.want)
	}
}

func TestPace(t *testing.T) {
	require.Equal(t, "1.0M of about 4.0M samples, 500.0k/s, 6s left", paceText("samples", 1_000_000, 4_000_000, 2*time.Second))
	require.Equal(t, "0 of about 4 samples, –", paceText("samples", 0, 4, 0))
}
