package ruletest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/junitxml"
	"go.yaml.in/yaml/v2"
)

// Options configure Run.
type Options struct {
	Run                 []string // regular expressions; tests whose names match none are left out. Empty: all
	Diff                bool     // print differences instead of what was expected and what was there
	Debug               bool     // print the duration of each test, and all samples at its end
	IgnoreUnknownFields bool     // in rule files
	DelayedNameRemoval  bool     // as Prometheus' feature promql-delayed-name-removal

	Parser   parser.Parser
	Out, Err io.Writer
	JUnit    io.Writer        // gets a report as JUnit's XML; nil: none
	Now      func() time.Time // the clock of the report and of Debug
}

// runner is one call of Run.
type runner struct {
	Options
	only *regexp.Regexp // nil: all
}

// Run runs the tests of files and prints the results. It reports whether all of them passed. An
// error means that Options are wrong or that the results could not be written.
func Run(o Options, paths []string) (passed bool, err error) {
	r := &runner{Options: o}
	if len(o.Run) > 0 {
		if r.only, err = regexp.Compile(strings.Join(o.Run, "|")); err != nil {
			return false, fmt.Errorf("--run: %w", err)
		}
	}
	report := &junitxml.JUnitXML{}
	passed = true
	for _, path := range paths {
		failures := r.file(path, report.Suite(path))
		out := "  SUCCESS\n"
		if len(failures) > 0 {
			out, passed = "", false
			text := "  FAILED:\n"
			for _, f := range failures {
				text += f.Error() + "\n"
				out += "\n"
			}
			if _, err := io.WriteString(o.Err, text); err != nil {
				return false, fmt.Errorf("print results: %w", err)
			}
		}
		if _, err := io.WriteString(o.Out, out+"\n"); err != nil {
			return false, fmt.Errorf("print results: %w", err)
		}
	}
	if o.JUnit != nil {
		if err := report.WriteXML(o.JUnit); err != nil {
			return false, fmt.Errorf("write the report of --junit: %w", err)
		}
	}
	return passed, nil
}

// file runs the tests of one file and returns what failed.
func (r *runner) file(path string, suite *junitxml.TestSuite) []error {
	abort := func(err error) []error {
		suite.Abort(err)
		return []error{err}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return abort(err)
	}
	f := &file{}
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		return abort(err)
	}
	var paths []string
	for _, pattern := range f.RuleFiles {
		if pattern != "" && !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(path), pattern)
		}
		found, err := filepath.Glob(pattern)
		if err != nil {
			return abort(err)
		}
		if len(found) == 0 {
			r.say("  WARNING: no file match pattern " + pattern)
		}
		paths = append(paths, found...)
	}
	f.RuleFiles = paths
	if f.EvaluationInterval == 0 {
		f.EvaluationInterval = defaultInterval
	}
	for i := range f.Tests {
		if f.Tests[i].Interval == 0 {
			f.Tests[i].Interval = f.EvaluationInterval
		}
	}
	suite.Settime(r.Now().Format("2006-01-02T15:04:05"))
	order := map[string]int{}
	for i, name := range f.GroupEvalOrder {
		if _, ok := order[name]; ok {
			return abort(fmt.Errorf("group name repeated in evaluation order: %s", name))
		}
		order[name] = i
	}
	var failures []error
	for i := range f.Tests {
		t := &f.Tests[i]
		if r.only != nil && !r.only.MatchString(t.Name) {
			continue
		}
		name := t.Name
		if name == "" {
			name = fmt.Sprintf("unnamed#%d", i)
		}
		one := suite.Case(name)
		begin := r.Now()
		if r.Debug {
			r.say("DEBUG: Starting test " + name)
		}
		for _, err := range r.test(t, f, order) {
			one.Fail(err.Error())
			failures = append(failures, err)
		}
		if r.Debug {
			r.say(fmt.Sprintf("DEBUG: Test %s finished, took %v", name, r.Now().Sub(begin)))
		}
	}
	return failures
}

// say prints a line beside the results.
func (r *runner) say(line string) {
	_, _ = fmt.Fprintln(r.Err, line) // the results report an output that is gone
}

// test runs one test and returns what failed.
func (r *runner) test(t *test, f *file, order map[string]int) (failures []error) {
	var all []*input
	for _, s := range t.Input {
		ls, values, err := r.Parser.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			return []error{fmt.Errorf("input_series %s: %w", s.Series, err)}
		}
		in, at := &input{labels: ls}, t.origin()
		for _, v := range values {
			if !v.Omitted {
				in.rest = append(in.rest, inputSample{at.UnixMilli(), v.Value, v.Histogram})
			}
			at = at.Add(time.Duration(t.Interval))
		}
		all = slices.DeleteFunc(all, func(other *input) bool { return labels.Equal(other.labels, ls) })
		all = append(all, in)
	}
	dir, err := os.MkdirTemp("", "promlake-rules-test-*")
	if err != nil {
		return []error{fmt.Errorf("make a directory for samples: %w", err)}
	}
	o := tsdb.DefaultOptions()
	o.MinBlockDuration, o.MaxBlockDuration = headRange.Milliseconds(), headRange.Milliseconds()
	o.RetentionDuration, o.OutOfOrderTimeWindow = 0, 0
	o.WALSegmentSize = -1 // nothing outlives the test
	db, err := tsdb.Open(dir, nil, nil, o, tsdb.NewDBStats())
	if err != nil {
		return []error{errors.Join(fmt.Errorf("open a TSDB: %w", err), os.RemoveAll(dir))}
	}
	interval := time.Duration(f.EvaluationInterval)
	e := &evaluation{
		test: t, runner: r, store: &store{DB: db, input: all}, interval: interval, fuzzy: f.FuzzyCompare,
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: maxSamples, Timeout: timeout, Parser: r.Parser,
			NoStepSubqueryIntervalFn: func(int64) int64 { return interval.Milliseconds() },
			EnableAtModifier:         true, EnableNegativeOffset: true, EnableDelayedNameRemoval: r.DelayedNameRemoval,
		}),
	}
	defer func() {
		if err := errors.Join(e.engine.Close(), db.Close(), os.RemoveAll(dir)); err != nil {
			failures = append(failures, fmt.Errorf("close the TSDB: %w", err))
		}
	}()
	return e.run(f.RuleFiles, order)
}
