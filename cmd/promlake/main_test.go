package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/promlake/promlake/internal/app/flags"
)

// commands returns the flags of each command, without help.
func commands(t *testing.T) map[string][]*kong.Flag {
	t.Helper()
	k, err := flags.NewParser(program, description, newCLI())
	require.NoError(t, err)
	out := map[string][]*kong.Flag{}
	for _, c := range k.Model.Children {
		out[c.Name] = c.Flags
	}
	return out
}

func TestEveryFlagHasItsOwnNameAndVariable(t *testing.T) {
	all := commands(t)
	require.Contains(t, all, "serve")
	for command, fs := range all {
		names, variables := map[string]bool{}, map[string]bool{}
		for _, f := range fs {
			require.Regexp(t, `^[a-z0-9]+([.-][a-z0-9]+)*$`, f.Name)
			require.NotEmpty(t, f.Help, "%s --%s", command, f.Name)
			require.False(t, names[f.Name], "%s --%s is twice there", command, f.Name)
			names[f.Name] = true

			if f.Envs == nil { // an option of this command
				continue
			}
			require.Len(t, f.Envs, 1, "%s --%s", command, f.Name)
			require.Regexp(t, `^PROMLAKE_[A-Z0-9]+(_[A-Z0-9]+)*$`, f.Envs[0])
			require.False(t, variables[f.Envs[0]], "%s: %s is twice there", command, f.Envs[0])
			variables[f.Envs[0]] = true
		}
	}
}

func TestVariables(t *testing.T) {
	variables := map[string]string{}
	for _, f := range commands(t)["serve"] {
		variables[f.Name] = f.Envs[0]
	}
	for flag, want := range map[string]string{
		"listen":                                "PROMLAKE_LISTEN",
		"store":                                 "PROMLAKE_STORE",
		"demo":                                  "PROMLAKE_DEMO",
		"query.timeout":                         "PROMLAKE_QUERY_TIMEOUT",
		"query.lookback-delta":                  "PROMLAKE_QUERY_LOOKBACK_DELTA",
		"query.max-samples":                     "PROMLAKE_QUERY_MAX_SAMPLES",
		"query.max-concurrency":                 "PROMLAKE_QUERY_MAX_CONCURRENCY",
		"web.cors.origin":                       "PROMLAKE_WEB_CORS_ORIGIN",
		"log.level":                             "PROMLAKE_LOG_LEVEL",
		"log.format":                            "PROMLAKE_LOG_FORMAT",
		"shutdown-timeout":                      "PROMLAKE_SHUTDOWN_TIMEOUT",
		"memory-limit":                          "PROMLAKE_MEMORY_LIMIT",
		"validation.max-label-names-per-series": "PROMLAKE_VALIDATION_MAX_LABEL_NAMES_PER_SERIES",
		"storage.remote.read-sample-limit":      "PROMLAKE_STORAGE_REMOTE_READ_SAMPLE_LIMIT",
		"web.enable-admin-api":                  "PROMLAKE_WEB_ENABLE_ADMIN_API",
		"compactor.enabled":                     "PROMLAKE_COMPACTOR_ENABLED",
		"compactor.compaction-interval":         "PROMLAKE_COMPACTOR_COMPACTION_INTERVAL",
		"compactor.blocks-retention-period":     "PROMLAKE_COMPACTOR_BLOCKS_RETENTION_PERIOD",
		"compactor.tenant-retention":            "PROMLAKE_COMPACTOR_TENANT_RETENTION",
	} {
		require.Equal(t, want, variables[flag], flag)
	}
}

// TestOptions: an option of one command has neither a variable nor a key of the settings file, but
// what says which data a command is about has both.
func TestOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte("store: file:///nonexistent/store\n"), 0o600))
	t.Setenv("PROMLAKE_TIME", "5")
	var out, errs bytes.Buffer
	require.Equal(t, 1, run(t.Context(), []string{"query", "--settings.file", file, "up"}, flags.Streams{Out: &out, Err: &errs}))
	require.Equal(t, "promlake: error: open store: stat /nonexistent/store: no such file or directory\n", errs.String())
	for _, c := range commands(t) {
		for _, f := range c {
			if f.Name == "time" || f.Name == "format" {
				require.Empty(t, f.Envs)
			}
		}
	}
	errs.Reset()
	require.NoError(t, os.WriteFile(file, []byte("time: 5\n"), 0o600))
	require.Equal(t, 2, run(t.Context(), []string{"query", "--settings.file", file, "up"}, flags.Streams{Out: &out, Err: &errs}))
	require.Contains(t, errs.String(), "settings.yaml:1: time: no such setting")
}

// TestHelp: help is short without settings that are rarely changed, and whole with --help-all.
func TestHelp(t *testing.T) {
	for command, want := range map[string][2]string{
		"serve": {"--config.file", "--query.max-samples"},
		"query": {"--explain", "--query.timeout"},
	} {
		for i, flag := range []string{"--help", "--help-all"} {
			var out bytes.Buffer
			exit := kong.Exit(func(int) { panic(nil) })
			require.Panics(t, func() {
				flags.Main(t.Context(), program, description, newCLI(), []string{command, flag}, flags.Streams{Out: &out, Err: &out}, exit)
			})
			require.Contains(t, out.String(), want[0])
			require.Equal(t, i == 1, strings.Contains(out.String(), want[1]+"="), out.String())
			if i == 0 {
				require.Less(t, strings.Count(out.String(), "\n"), 120)
				require.Contains(t, out.String(), "promlake "+command+" --help-all prints")
			}
		}
	}
}

// TestTimes: times are absolute or relative to now.
func TestTimes(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000).UTC()
	for text, want := range map[string]time.Duration{"": 0, "now": 0, "now-1h30m": -90 * time.Minute, "now+2d": 48 * time.Hour, "1799999999.5": -500 * time.Millisecond, "2027-01-15T08:00:01Z": time.Second} {
		got, err := parseTime("time", text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got.Sub(now), text)
	}
	for _, text := range []string{"now-", "now1h", "now-1", "now-1x", "nowhere", "yesterday"} {
		_, err := parseTime("time", text, now)
		require.EqualError(t, err, fmt.Sprintf("--time %q: want now-1h, RFC 3339 or seconds since 1970", text))
	}
}

// closedAddress returns a loopback address that refuses connections until the test ends: a socket
// has it, so that no other program listens there.
func closedAddress(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(fd)) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

// TestUnreachable: a wrong address is an error before requests would have been repeated.
func TestUnreachable(t *testing.T) {
	address := closedAddress(t)
	store := "s3://bucket/p?region=eu-central-1&access_key=a&secret_key=b&endpoint=http://" + address
	for _, args := range [][]string{{"query", "up", "--store", store}, {"sql", "SELECT 1", "--store", store}, {"inspect", "--store", store}, {"query", "up", "--url", "http://" + address}} {
		t.Run(strings.Join(args[:len(args)-1], " "), func(t *testing.T) {
			t.Parallel() // they wait for seconds
			var out, errs bytes.Buffer
			require.Equal(t, 1, run(t.Context(), args, flags.Streams{Out: &out, Err: &errs}))
			require.Regexp(t, `^promlake: error: (connect to the store's endpoint|query: send request: Post ).*`+regexp.QuoteMeta(address)+`.*connection refused\n$`, errs.String())
		})
	}
}

// TestDefaults holds that parsing nothing changes nothing.
func TestDefaults(t *testing.T) {
	c := newCLI()
	k, err := flags.NewParser(program, description, c)
	require.NoError(t, err)
	_, err = k.Parse([]string{"serve"})
	require.NoError(t, err)
	require.Equal(t, newCLI(), c)
}

func TestCommandLine(t *testing.T) {
	for _, tc := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string // regular expressions
	}{
		{"version", []string{"version"}, 0, `^promlake dev \(revision .+, go.+\)\n$`, `^$`},
		{"no command", nil, 2, `^$`, `^promlake: error: expected one of .*\n$`},
		{"unknown flag", []string{"serve", "--bogus"}, 2, `^$`, `^promlake: error: unknown flag --bogus .*\n$`},
		{"bad enum", []string{"serve", "--log.level=loud"}, 2, `^$`, `^promlake: error: --log.level must be one of .*\n$`},
		{"bad store", []string{"serve", "--listen=127.0.0.1:0", "--store=gopher://x"}, 1, `^$`, `^promlake: error: start: open store gopher://x: .*\n$`},
		{"compact nothing", []string{"compact", "--store=" + t.TempDir()}, 0, `^jobs done +0\n(?s:.*)\nspeed +0/s samples\n$`, `^$`},
		{"compact a missing store", []string{"compact", "--store=/nonexistent/store"}, 1, `^$`, `^promlake: error: open store: .*\n$`},
		{"compact at a bad time", []string{"compact", "--now=soon"}, 1, `^$`, `^promlake: error: --now "soon": want now-1h, RFC 3339 or seconds since 1970\n$`},
		{"bad retention", []string{"compact", "--compactor.tenant-retention=a"}, 2, `^$`, `^promlake: error: --compactor.tenant-retention: period of a tenant "a": .*\n$`},
		{
			"compactor that would lose work", []string{"compact", "--store=" + t.TempDir(), "--compactor.partial-block-deletion-delay=1m"},
			1, `^$`, `^promlake: error: start compaction: compactor.partial-block-deletion-delay: want more than 15m0s.*, got 1m0s\n$`,
		},
		{"contradiction", []string{"serve", "--query.timeout=1h"}, 2, `^$`, `^promlake: error: serve: query.timeout: want less than compactor.deletion-delay \(15m0s\), .*, got 1h0m0s .*\n$`},
		{"contradiction that is only printed", []string{"config", "--query.timeout=1h"}, 2, `^$`, `^promlake: error: config: query.timeout: want less than .*\n$`},
		{"out of limits", []string{"serve", "--query.max-samples=0"}, 2, `^$`, `^promlake: error: --query.max-samples: want at least 1, got 0 .*\n$`},
		{"inspect nothing", []string{"inspect", "--store=" + t.TempDir()}, 0, `^The store is empty\.\n$`, `^$`},
		{"inspect a missing store", []string{"inspect", "--store=/nonexistent/store"}, 1, `^$`, `^promlake: error: open store: .*\n$`},
		{"inspect as JSON", []string{"inspect", "--store=" + t.TempDir(), "--json"}, 0, `^\{\n  "tenants": \[\]\n\}\n$`, `^$`},
		{"a token for nobody", []string{"token", "--access=read"}, 2, `^$`, `^promlake: error: missing flags: --tenant=NAME.*\n$`},
		{"a token for nothing", []string{"token", "--tenant=a", "--access=fly"}, 1, `^$`, `^promlake: error: access "fly": want read, write or admin\n$`},
		{"a token", []string{"token", "--tenant=a", "--access=read,write"}, 0, `^pl_[A-Za-z0-9_-]{43}\n\{"sha256":"[0-9a-f]{64}","tenants":\["a"\],"access":\["read","write"\]\}\n$`, `^$`},
		{"no expression", []string{"query"}, 2, `^$`, `^promlake: error: expected "<expr>".*\n$`},
		{"bad expression", []string{"query", "--store=" + t.TempDir(), "sum("}, 1, `^$`, `^promlake: error: query: bad_data: .*parse error.*\n$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tc.args, flags.Streams{Out: &stdout, Err: &stderr})
			require.Equal(t, tc.code, code, stderr.String())
			require.Regexp(t, tc.stdout, stdout.String())
			require.Regexp(t, tc.stderr, stderr.String())
		})
	}
}
