package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
)

// TestCompletion asks each shell what it completes a line to.
func TestCompletion(t *testing.T) {
	asks := map[string]string{
		"bash": "COMP_WORDS=(promlake $ARGS); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _promlake; printf '%s\n' \"${COMPREPLY[@]}\"",
		"zsh":  "compadd() { shift; print -l -- ${(M)@:#$words[CURRENT]*} }; words=(promlake ${=ARGS}); CURRENT=$#words; _promlake",
		"fish": `complete -C "promlake $ARGS"`,
	}
	for shell, ask := range asks {
		t.Run(shell, func(t *testing.T) {
			var script, errs bytes.Buffer
			require.Zero(t, run(t.Context(), []string{"completion", shell}, flags.Streams{Out: &script, Err: &errs}), errs.String())
			path, err := exec.LookPath(shell)
			require.NoError(t, err, "tests/tools/system.sh shells installs it")
			for line, want := range map[string][]string{
				"qu":                           {"query"},
				"im":                           {"import"},
				"import ts":                    {"tsdb"},
				"query --expl":                 {"--explain"},
				"query up --time 5 --expl":     {"--explain"},
				"rules te":                     {"test"},
				"serve --no-store-ch":          {"--no-store-check"},
				"serve --settings.f":           {"--settings.file"},
				"completion fi":                {"fish"},
				"import tsdb --compactor.tena": {"--compactor.tenant-retention"},
				"tenant list --nothing":        {},
			} {
				before := ""
				if shell == "zsh" {
					before = "compdef() { :; }\n"
				}
				cmd := exec.Command(path, "-c", before+script.String()+ask)
				cmd.Dir = t.TempDir()
				cmd.Env = append(cmd.Environ(), "ARGS="+line, "HOME="+cmd.Dir)
				out, err := cmd.Output()
				require.NoError(t, err, line)
				require.Equal(t, want, append([]string{}, strings.Fields(string(out))...), line)
			}
		})
	}
}
