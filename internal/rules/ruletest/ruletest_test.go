package ruletest

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// promtool is the oracle: with it, the golden files are written anew.
var promtool = flag.String("promtool", "", "path of promtool 3.15: write what it answers to testdata/*.golden")

func TestAnswersArePromtools(t *testing.T) {
	t.Chdir("testdata")
	for _, tc := range []struct {
		golden string
		args   []string // of promtool test rules
		o      Options
		files  []string
	}{
		{"pass", nil, Options{}, []string{"pass.yml"}},
		{"fail", nil, Options{}, []string{"fail.yml"}},
		{"diff", []string{"--diff", "--run", "alerts"}, Options{Diff: true, Run: []string{"alerts"}}, []string{"fail.yml"}},
		{"fuzzy", nil, Options{}, []string{"fuzzy.yml"}},
		{"near", []string{"--run=near", "--run=none"}, Options{Run: []string{"near", "none"}}, []string{"fuzzy.yml"}},
		{"several", nil, Options{}, []string{"exact.yml", "pass.yml", "order.yml", "unknown.yml"}},
		{"evaluation", nil, Options{}, []string{"evaluation.yml"}},
		{"syntax", nil, Options{}, []string{"syntax.yml"}},
		{"extra", nil, Options{}, []string{"extra.yml"}},
		{"ignored", []string{"--ignore-unknown-fields"}, Options{IgnoreUnknownFields: true}, []string{"extra.yml"}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			path := tc.golden + ".golden"
			if *promtool != "" {
				var out, errs bytes.Buffer
				c := exec.Command(*promtool, append(append([]string{"test", "rules"}, tc.args...), tc.files...)...)
				c.Stdout, c.Stderr = &out, &errs
				verdict := c.Run() == nil
				require.NoError(t, os.WriteFile(path, []byte(golden(verdict, out.String(), errs.String())), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), golden(run(t, tc.o, tc.files...)))
		})
	}
}

func golden(passed bool, out, errs string) string {
	verdict := "failed"
	if passed {
		verdict = "passed"
	}
	return verdict + "\n--- stdout\n" + out + "--- stderr\n" + errs
}

func run(t *testing.T, o Options, files ...string) (passed bool, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.Out, o.Err, o.Parser = &stdout, &stderr, parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
	o.Now = func() time.Time { return time.Unix(0, 0).UTC() }
	passed, err := Run(o, files)
	require.NoError(t, err)
	return passed, stdout.String(), stderr.String()
}

// write makes a file in a directory of the test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := t.TempDir() + "/" + name
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestInputThatIsNoSeriesIsNamed(t *testing.T) {
	path := write(t, "t.yml", "tests: [{input_series: [{series: 'up{a=', values: 1}]}]")
	passed, _, errs := run(t, Options{}, path)
	require.False(t, passed)
	require.Contains(t, errs, `input_series up{a=: 1:7: parse error`)

	path = write(t, "t.yml", "tests: [{start_timestamp: yesterday}]")
	passed, _, errs = run(t, Options{}, path)
	require.False(t, passed)
	require.Contains(t, errs, `start_timestamp "yesterday": want RFC 3339 or seconds since 1970`)

	passed, _, errs = run(t, Options{}, "none.yml")
	require.False(t, passed)
	require.Contains(t, errs, "open none.yml: no such file")
}

func TestPatternOfNamesThatIsNone(t *testing.T) {
	_, err := Run(Options{Run: []string{"("}}, nil)
	require.ErrorContains(t, err, "--run: error parsing regexp")
}

// TestLanguageIsThatOfTheServer differs from promtool, which refuses experimental functions and
// more than 10,000 samples.
func TestLanguageIsThatOfTheServer(t *testing.T) {
	path := write(t, "t.yml", `
tests:
  - input_series: [{series: a, values: 1x20000}]
    promql_expr_test:
      - {expr: 'mad_over_time(a[5m])', eval_time: 10m, exp_samples: [{value: 0}]}
      - {expr: 'count_over_time(a[30d])', eval_time: 20000m, exp_samples: [{value: 20001}]}
`)
	passed, _, errs := run(t, Options{}, path)
	require.True(t, passed, errs)
}

func TestReport(t *testing.T) {
	t.Chdir("testdata")
	var report bytes.Buffer
	run(t, Options{JUnit: &report}, "fuzzy.yml", "order.yml")
	want := `<testsuites><testsuite name="fuzzy.yml" tests="2" failures="1" errors="0" skipped="0" timestamp="1970-01-01T00:00:00">` +
		`<testcase name="near"></testcase><testcase name="far"><failure>`
	require.Equal(t, want, report.String()[:len(want)])
	require.Contains(t, report.String(), "group name repeated in evaluation order: a</error>")
}

func TestDebug(t *testing.T) {
	path := write(t, "t.yml", "tests: [{name: n, input_series: [{series: a, values: 1 2}], promql_expr_test: [{expr: 'vector(1)', eval_time: 1m, exp_samples: [{value: 1}]}]}]")
	passed, _, errs := run(t, Options{Debug: true}, path)
	require.True(t, passed, errs)
	require.Equal(t, "DEBUG: Starting test n\nDEBUG: Dump of all data (input_series and rules) at 1m1s:\na =>\n1 @[0]\n2 @[60000]\nDEBUG: Test n finished, took 0s\n",
		strings.ReplaceAll(errs, `{__name__="a"}`, "a"))
}
