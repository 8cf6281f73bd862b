package flags_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

// runWith runs the grammar with a settings file.
func runWith(t *testing.T, text string, args ...string) (g grammar, code int, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("s.yaml", []byte(text), 0o600))
	t.Setenv("PROMLAKE_SETTINGS_FILE", "s.yaml")
	g = defaults()
	var out, errs bytes.Buffer
	code = flags.Main(t.Context(), "test", "A test.", &g, args, flags.Streams{Out: &out, Err: &errs})
	return g, code, errs.String()
}

func TestFile(t *testing.T) {
	t.Setenv("PROMLAKE_COUNT", "2")
	g, code, stderr := runWith(t, `# all kinds
text: "x: y"
a.wait-time: 5s
size: 1KiB
count: 3
ratio: 0.25
on: false
list: ["a,b", c]
tenants: [a=1w, b=0]
keep: 30d
kind: blue
nothing: 4
store: from the file
`, "--store=from the flag")
	require.Equal(t, 0, code, stderr)
	want := defaults()
	want.Text, want.Wait, want.Size, want.Count, want.Ratio, want.On, want.List = "x: y", 5*time.Second, 1024, 2, 0.25, false, []string{"a,b", "c"}
	want.Tenants = map[string]time.Duration{"a": 7 * 24 * time.Hour, "b": 0}
	want.Keep, want.Kind, want.Nothing, want.Store = 30*24*time.Hour, "blue", 4, "from the flag"
	sources := map[string]flags.Source{}
	for _, v := range g.seen {
		sources[v.Name] = v.Source
	}
	require.Equal(t, flags.Environment, sources["count"])
	require.Equal(t, flags.CommandLine, sources["store"])
	require.Equal(t, flags.File, sources["kind"])
	require.Equal(t, flags.Default, sources["token"])
	g.seen = nil
	require.Equal(t, want, g)
}

// TestDefaultFile: the user's file is read if no other one is named, and none if the flag is empty.
func TestDefaultFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "promlake")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "promlake.yaml"), []byte("count: 3\n"), 0o600))
	for args, want := range map[string]int{"": 3, "--count=4": 4, "--settings.file=": 7} {
		var out bytes.Buffer
		g := defaults()
		require.Zero(t, flags.Main(t.Context(), "test", "A test.", &g, strings.Fields(args), flags.Streams{Out: &out, Err: &out}), out.String())
		require.Equal(t, want, g.Count, args)
	}
}

func TestFileWithoutSettings(t *testing.T) {
	for _, text := range []string{"", "# nothing\n"} {
		g, code, stderr := runWith(t, text)
		require.Equal(t, 0, code, stderr)
		require.False(t, g.seen.Given("count"))
	}
}

func TestBadFiles(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"unknown key":   {"count: 1\nno.such-key: 1\n", "s.yaml:2: no.such-key: no such setting"},
		"the file":      {"settings.file: x\n", "s.yaml:1: settings.file: no such setting"},
		"twice":         {"count: 1\nratio: 1\ncount: 2\n", "s.yaml:3: count: the key is there twice, first in s.yaml:1"},
		"wrong type":    {"\ncount: many\n", "--count: s.yaml:2: count: expected a valid 64 bit int but got \"many\""},
		"wrong size":    {"size: big\n", "--size: s.yaml:1: size: size \"big\": want bytes such as 1048576 or 64MiB"},
		"list of one":   {"count: [1, 2]\n", "--count: s.yaml:1: count: want one value, got a list"},
		"mapping":       {"tenants: {a: 1w}\n", "s.yaml:1: tenants: want a value or a list of values"},
		"nothing":       {"count:\n", "s.yaml:1: count: want a value or a list of values"},
		"no mapping":    {"- count\n", "s.yaml:1: want lines such as query.timeout: 2m"},
		"broken":        {"count: [1\n", "s.yaml: yaml: line 1: did not find expected ',' or ']'"},
		"two documents": {"count: 1\n---\ncount: 2\n", "s.yaml: want one YAML document"},
		"bad choice":    {"kind: green\n", `--kind must be one of "red","blue" but got "green"`},
		"out of limits": {"share: 3\n", "--share: want at most 2, got 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, code, stderr := runWith(t, tc.text)
			require.Equal(t, 2, code)
			require.Contains(t, stderr, ": error: "+tc.want)
		})
	}
}

func TestMissingFile(t *testing.T) {
	var errs bytes.Buffer
	g := defaults()
	missing := filepath.Join(t.TempDir(), "none.yaml")
	require.Equal(t, 2, flags.Main(t.Context(), "test", "A test.", &g, []string{"--settings.file", missing}, flags.Streams{Out: &errs, Err: &errs}))
	require.Contains(t, errs.String(), "read settings: open "+missing)
}

func TestLimits(t *testing.T) {
	for arg, want := range map[string]string{
		"--share=0":        "--share: want at least 1, got 0",
		"--share=-1":       "--share: want at least 1, got -1",
		"--share=3":        "--share: want at most 2, got 3",
		"--patience=0s":    "--patience: want more than 0, got 0s",
		"--patience=1h1m":  "--patience: want at most 1h, got 1h1m",
		"--tenants=a=-1ns": `--tenants: period "-1ns": want one such as`,
	} {
		var errs bytes.Buffer
		g := defaults()
		require.Equal(t, 2, flags.Main(t.Context(), "test", "A test.", &g, []string{arg}, flags.Streams{Out: &errs, Err: &errs}), arg)
		require.Contains(t, errs.String(), want)
	}
}
