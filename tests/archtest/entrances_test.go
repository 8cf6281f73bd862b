package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entrances are the calls by which something comes into a process, or into a recursive parser, with
// the packages that may make them and what bounds it there. docs/security.md lists the entrances. A
// new call needs a line here, and bounds.
var entrances = []struct {
	call *regexp.Regexp
	in   map[string]string
}{
	{regexp.MustCompile(`net\.Listen(Packet)?\(|\bListenConfig\b`), map[string]string{
		"cmd/promlake":            "a socket of the user, for the Python package",
		"internal/app":            "Flight SQL: process.Connections",
		"internal/app/process":    "HTTP: Connections",
		"internal/senders/listen": "lines: lengths, connections, memory",
	}},
	{regexp.MustCompile(`http\.Server\{`), map[string]string{
		"cmd/promlake":         "a socket of the user",
		"internal/app/process": "the one server: access, sizes, times",
	}},
	{regexp.MustCompile(`grpc\.NewServer\(`), map[string]string{"internal/sql/flightsql": "its interceptor is before every method"}},
	{regexp.MustCompile(`StartWithOptions\(`), map[string]string{"internal/aws/lambda": "events: the handlers of HTTP"}},
	{regexp.MustCompile(`\.ReceiveMessage\(`), map[string]string{"internal/aws/sqsqueue": "messages that this system sent"}},
	{regexp.MustCompile(`\.(ParseExpr|ParseMetricSelectors?)\(`), map[string]string{
		"internal/app/promapp":        "rules: checked when they are set and when they are loaded",
		"internal/query/admin":        "expression.Limits",
		"internal/query/api":          "the guard of all parameters",
		"internal/query/api/weights":  "the guard of all parameters",
		"internal/query/engine":       "expression.Limits",
		"internal/query/explain":      "a query that was parsed before, or an argument of a command",
		"internal/rules/rulefn":       "rules: checked when they are set and when they are compiled",
		"internal/rules/ruletemplate": "files of the operator: checked when they are read",
		"internal/app/exportapp":      "arguments of a command",
		"internal/app/importapp":      "arguments of a command",
	}},
	{regexp.MustCompile(`"text/template(/parse)?"|"html/template"|NewTemplateExpander\(`), map[string]string{
		"internal/rules/ruletemplate": "Limits, and a trial within a budget",
	}},
}

// TestEntrances: only the packages of the table open entrances or call recursive parsers.
func TestEntrances(t *testing.T) {
	used := make([]map[string]bool, len(entrances))
	for i := range used {
		used[i] = map[string]bool{}
	}
	for _, name := range strings.Split(string(command(t, "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")), "\n") {
		if name == "" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tests/") || strings.HasPrefix(name, "infra/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // tracked, and removed in the work tree
		}
		require.NoError(t, err)
		watch(t, filepath.Dir(name))
		for line := range strings.Lines(string(text)) {
			if code, _, _ := strings.Cut(line, "//"); code != "" {
				for i, e := range entrances {
					if e.call.MatchString(code) {
						require.Contains(t, e.in, filepath.Dir(name), "%s: %s", name, strings.TrimSpace(line))
						used[i][filepath.Dir(name)] = true
					}
				}
			}
		}
	}
	for i, e := range entrances {
		for dir := range e.in {
			require.True(t, used[i][dir], "%s has no %s any more: remove it from the table", dir, e.call)
		}
	}
}
