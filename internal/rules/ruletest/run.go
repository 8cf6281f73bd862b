package ruletest

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/junitxml"
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
	f, err := read(path, r.say)
	if err != nil {
		return abort(err)
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
	in, err := t.parse(r.Parser)
	if err != nil {
		return []error{err}
	}
	s, err := newStore(in)
	if err != nil {
		return []error{err}
	}
	defer func() {
		if err := s.Close(); err != nil {
			failures = append(failures, fmt.Errorf("close the TSDB: %w", err))
		}
	}()
	e := r.evaluation(t, f, s)
	defer func() { failures = append(failures, unjoin(e.engine.Close())...) }()
	return e.run(f.RuleFiles, order)
}

// unjoin returns the errors that err consists of.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return many.Unwrap()
	}
	return []error{err}
}
