package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

// command runs promlake and returns its exit code and what it printed.
func command(args ...string) (code int, out, errs string) {
	var o, e strings.Builder
	code = run(context.Background(), args, flags.Streams{Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, path)
		}
		return err
	}))
	return out
}

func TestTenantCommands(t *testing.T) {
	store := filled(t)
	dir := strings.TrimPrefix(store, "file://")
	code, out, errs := command("tenant", "list", "--store", store)
	require.Zero(t, code, errs)
	require.Equal(t, "anonymous\nother\n", out)

	before := files(t, dir)
	const table = "" +
		"TENANT other       OBJECTS  BYTES\n" +
		"segments                 1"
	for _, tc := range []struct {
		args []string
		code int
		out  string
		errs string
	}{
		{[]string{"--dry-run"}, 0, table, ""},
		{[]string{"--dry-run", "--yes", "--force"}, 0, table, ""},
		{nil, 1, table, "nothing was removed: add --yes to remove it"},
		{[]string{"--yes"}, 1, table, "want 10m0s: stop its writers first, or add --force"},
		{[]string{"--yes", "--quiet=0s"}, 1, "", "want more than 0s, got 0s; --force leaves the check out"},
	} {
		code, out, errs := command(append([]string{"tenant", "delete", "other", "--store", store}, tc.args...)...)
		require.Equal(t, tc.code, code, "%v: %s", tc.args, errs)
		require.Contains(t, squeeze(out), squeeze(tc.out))
		require.Contains(t, errs, tc.errs)
		require.Equal(t, before, files(t, dir), "%v", tc.args)
	}

	code, out, errs = command("tenant", "delete", "other", "--store", store, "--yes", "--force")
	require.Zero(t, code, errs)
	require.Contains(t, out, "removed 1 objects\nthe manifest stays until ")
	for _, f := range files(t, filepath.Join(dir, "v1", "other")) {
		require.Contains(t, f, "manifest")
	}
	code, out, errs = command("query", "--store", store, "--tenant", "other", "--time", at.Format("2006-01-02T15:04:05Z07:00"), "count(up)")
	require.Zero(t, code, errs)
	require.NotContains(t, out, "3")
	code, out, errs = command("query", "--store", store, "--time", at.Format("2006-01-02T15:04:05Z07:00"), "count(up)")
	require.Zero(t, code, errs)
	require.Contains(t, out, "3", "the other tenant is whole")

	for _, name := range []string{"", "a/b", ".."} {
		code, _, errs = command("tenant", "delete", name, "--store", store, "--yes", "--force")
		require.Equal(t, 1, code, name)
		require.Contains(t, errs, "want the name of a tenant")
	}
	code, out, errs = command("tenant", "delete", "nobody", "--store", store, "--yes")
	require.Zero(t, code, errs)
	require.Equal(t, "the store has nothing of tenant nobody\n", out)
	code, _, errs = command("tenant", "list", "--store", "file://"+filepath.Join(t.TempDir(), "missing"))
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no such file")
}

// squeeze makes one of several spaces, so that the width of a column does not matter.
func squeeze(s string) string { return regexp.MustCompile(` +`).ReplaceAllString(s, " ") }
