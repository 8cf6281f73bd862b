package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopyCommand(t *testing.T) {
	store := filled(t)
	backup := "file://" + filepath.Join(t.TempDir(), "backup")
	restored := "file://" + filepath.Join(t.TempDir(), "restored")
	when := at.Format("2006-01-02T15:04:05Z07:00")
	for _, step := range [][2]string{{store, backup}, {backup, restored}} {
		code, out, errs := command("copy", "--from", step[0], "--to", step[1])
		require.Zero(t, code, errs)
		require.Contains(t, out, "TENANT     COPIED")
		require.Contains(t, out, "copied 2 of 2 tenants in ")
		for _, tenant := range []string{"anonymous", "other"} {
			_, want, _ := command("query", "--store", store, "--tenant", tenant, "--time", when, "up")
			code, got, errs := command("query", "--store", step[1], "--tenant", tenant, "--time", when, "up")
			require.Zero(t, code, errs)
			require.Contains(t, got, `up{job="c"}`)
			require.Equal(t, want, got)
		}
	}
	code, out, errs := command("copy", "--from", store, "--to", backup)
	require.Equal(t, 1, code)
	require.Contains(t, out, "copied 0 of 2 tenants")
	require.Contains(t, errs, "copy tenant other: the destination has objects of this tenant already")

	one := "file://" + filepath.Join(t.TempDir(), "one")
	code, _, errs = command("copy", "--from", store, "--to", one, "--tenant", "other")
	require.Zero(t, code, errs)
	_, out, _ = command("tenant", "list", "--store", one)
	require.Equal(t, "other\n", out)

	for want, args := range map[string][]string{
		"--from and --to are one store": {"--from", store, "--to", store},
		"no such file":                  {"--from", store + "/missing", "--to", one},
		"unsupported character":         {"--from", store, "--to", one, "--tenant", "a/b"},
	} {
		code, _, errs := command(append([]string{"copy"}, args...)...)
		require.Equal(t, 1, code)
		require.Contains(t, errs, want)
	}
}
