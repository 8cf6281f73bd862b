package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/settings"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// everything is the grammar of promlake serve and of the functions together.
type everything struct {
	Settings  app.Settings        `embed:""`
	Redriving ingestapp.Redriving `embed:"" group:"Ingest"`
	Workers   compactapp.Workers  `embed:"" group:"Compaction"`
	Lambda    lambda.Settings     `embed:"" group:"AWS Lambda"`
}

// TestReference holds docs/configuration.md against the settings. With -update it writes the file.
func TestReference(t *testing.T) {
	grammar := settings.Default[everything]()
	k, err := flags.NewParser(program, description, &grammar)
	require.NoError(t, err)
	groups := map[string][]*kong.Flag{}
	for _, f := range k.Model.Flags {
		switch {
		case f.Name == "help" || f.Name == "help-all" || f.Name == "version":
		case f.Group == nil:
			require.Equal(t, flags.SettingsFile, f.Name, "every setting is in a group")
		default:
			require.NotEmpty(t, f.Tag.Get("when"), "when to change --%s", f.Name)
			groups[f.Group.Key] = append(groups[f.Group.Key], f)
		}
	}
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, g := range []string{"Process", "Ingest", "Query", "Scraping and rules", "Page", "Compaction", "Demo", "AWS Lambda"} {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | default | meaning | when to change it |\n|---|---|---|---|\n", g)
		for _, f := range groups[g] {
			value := ""
			if f.Default != "" {
				value = "`" + strings.ReplaceAll(f.Default, ",", ", ") + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, value, strings.ReplaceAll(f.Help, "|", "\\|"), f.Tag.Get("when"))
		}
		delete(groups, g)
	}
	require.Empty(t, groups, "groups that the reference does not know")
	path := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got), "run go test ./cmd/promlake -run TestReference -update")
}

const referenceHead = `# Configuration

<!-- Generated from the settings: go test ./cmd/promlake -run TestReference -update -->

Every setting has one name. A program takes it from the first of these that has it:

1. a flag: ` + "`--query.timeout=2m`" + `
2. an environment variable: ` + "`PROMLAKE_QUERY_TIMEOUT=2m`" + `, the name in capitals, with ` + "`_` for `.` and `-`" + `
3. a line of the file that ` + "`--settings.file` or `PROMLAKE_SETTINGS_FILE`" + ` names: ` + "`query.timeout: 2m`" + `
4. the default

If no file is named, the program reads ` + "`promlake/promlake.yaml` in `$XDG_CONFIG_HOME` or `~/.config`" + `, or else
` + "`/etc/promlake/promlake.yaml`; `--settings.file=`" + ` reads none. Options that belong to one command, such as the
` + "`--time` of `promlake query`" + `, have a flag only.

` + "`promlake serve` and the programs of the functions (`ingest-fn`, `compact-fn`, `query-fn`)" + ` read them alike. A
function has no arguments: it reads its variables and, if its package contains one, a file, such as
` + "`PROMLAKE_SETTINGS_FILE=/var/task/settings.yaml`" + `.

The file is YAML: a mapping of names to values, which are written as in flags. A setting that can be repeated takes a
list as well. A name that the program does not have, or that is there twice, is an error. ` + "`promlake`" + ` accepts the
names of all of its commands, a function only its own.

` + "```" + `yaml
store: s3://metrics?region=eu-central-1
query.timeout: 1m
query.cache-bytes: 50GiB
compactor.tenant-retention: [team-a=30d, team-b=1y]
` + "```" + `

` + "`promlake config`" + ` prints the settings that ` + "`promlake serve`" + ` would have, with the source of each; it does not print
secrets. ` + "`promlake config --print-defaults`" + ` prints a file of all defaults. A value outside of its limits is an error that
names the setting, the value and the limit.
`

func TestConfig(t *testing.T) {
	t.Setenv("PROMLAKE_QUERY_MAX_CONCURRENCY", "20")
	t.Setenv("PROMLAKE_SELF_TOKEN", "hush")
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte("query.max-series: 7\nquery.max-concurrency: 9\nquery.max-samples: 8\nweb.allowed-hosts: [a, b]\n"), 0o600))
	var out, errs bytes.Buffer
	args := []string{"config", "--settings.file=" + file, "--query.max-samples=5", "--store=s3://u:hush@b/p?secret_key=hush"}
	require.Equal(t, 0, run(t.Context(), args, flags.Streams{Out: &out, Err: &errs}), errs.String())
	for _, line := range []string{
		"query.max-samples: 5  # flag", "query.max-concurrency: 20  # environment", "query.max-series: 7  # file", "query.timeout: 2m  # default",
		"web.allowed-hosts: a,b  # file", "# self.token: \"<secret>\"  # environment", "# store: s3://b/p  # flag",
	} {
		require.Contains(t, out.String(), "\n"+line+"\n")
	}
	require.NotContains(t, out.String(), "hush")
}

// TestPrintedDefaultsAreAFile reads back what is printed, and finds every setting at its default.
func TestPrintedDefaultsAreAFile(t *testing.T) {
	var defaults, out, errs bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"config", "--print-defaults", "--query.timeout=9s"}, flags.Streams{Out: &defaults, Err: &errs}), errs.String())
	require.Contains(t, defaults.String(), "\nquery.timeout: 2m\n")
	file := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(file, defaults.Bytes(), 0o600))
	require.Equal(t, 0, run(t.Context(), []string{"config", "--settings.file", file}, flags.Streams{Out: &out, Err: &errs}), errs.String())
	require.Equal(t, defaults.String(), strings.ReplaceAll(out.String(), "  # file\n", "\n"))
}
