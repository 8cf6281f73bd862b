package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/copyapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/format/key"
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

// TestCopyFollow: a replica answers as its source, is followed until the command is ended, and no
// longer once a server has written to it.
func TestCopyFollow(t *testing.T) {
	store, to := filled(t), filepath.Join(t.TempDir(), "replica")
	args := []string{"copy", "--from", store, "--to", "file://" + to, "--follow", "--interval", "10ms", "--log.format", "json"}
	follow := func() (code int, lines string) {
		ctx, end := context.WithCancel(t.Context())
		var log bytes.Buffer
		done := make(chan int)
		go func() { done <- run(ctx, args, flags.Streams{Err: &log, Out: io.Discard}) }()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			_, err := os.Stat(filepath.Join(to, copyapp.PointKey))
			assert.NoError(c, err)
		}, time.Minute, 10*time.Millisecond)
		end()
		return <-done, log.String()
	}
	code, lines := follow()
	require.Zero(t, code, lines)
	var line struct {
		Msg                                       string
		Tenants, Copied, Bytes, Deleted, Requests int64
		LagSeconds                                *float64 `json:"lag_seconds"`
	}
	require.NoError(t, json.Unmarshal([]byte(strings.SplitN(lines, "\n", 2)[0]), &line), lines)
	require.Equal(t, "replicated", line.Msg)
	require.EqualValues(t, 2, line.Tenants)
	require.Positive(t, line.Copied*line.Bytes*line.Requests)
	require.NotNil(t, line.LagSeconds)
	when := at.Format("2006-01-02T15:04:05Z07:00")
	for _, tenant := range []string{"anonymous", "other"} {
		_, want, _ := command("query", "--store", store, "--tenant", tenant, "--time", when, "up")
		code, got, errs := command("query", "--store", "file://"+to, "--tenant", tenant, "--time", when, "up")
		require.Zero(t, code, errs)
		require.Equal(t, want, got)
	}
	require.NoError(t, os.WriteFile(filepath.Join(to, key.Identity), []byte("{}"), 0o600))
	code, _, errs := command(args...)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "somebody else writes to the destination")
}
