package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/rules/ruletest"
)

// rulesCmd are the tools for who writes rules.
type rulesCmd struct {
	Test   rulesTestCmd   `cmd:"" help:"Run promtool's unit tests of rules."`
	Replay rulesReplayCmd `cmd:"" help:"Print when an alert would have fired."`

	Backfill rulesBackfillCmd `cmd:"" help:"Write what recording rules would have written in the past. May be killed and repeated."`
}

type rulesTestCmd struct {
	Files   []string `arg:"" name:"file" help:"Unit test files, as promtool test rules takes them."`
	Only    []string `name:"run" sep:"none" placeholder:"REGEXP" help:"Run only tests whose names match. Repeatable."`
	Diff    bool     `name:"diff" help:"Print coloured differences of alerts instead of the expected and the actual ones."`
	JUnit   string   `name:"junit" placeholder:"FILE" help:"File for a report as JUnit's XML."`
	Debug   bool     `name:"debug" help:"Print the duration of each test, and all of its samples."`
	Ignore  bool     `name:"ignore-unknown-fields" help:"Ignore unknown fields in rule files."`
	Delayed bool     `name:"query.delayed-name-removal" help:"Drop metric names at the end of a query, as a server with this flag does."`
}

// Run tests and prints. A test that fails ends the program with exit code 1.
func (c *rulesTestCmd) Run(io flags.Streams) (err error) {
	o := ruletest.Options{
		Run: c.Only, Diff: c.Diff, Debug: c.Debug, IgnoreUnknownFields: c.Ignore, DelayedNameRemoval: c.Delayed,
		Parser: parser.NewParser(query.ParserOptions()), Out: io.Out, Err: io.Err, Now: time.Now,
	}
	if c.JUnit != "" {
		f, cerr := os.Create(c.JUnit)
		if cerr != nil {
			return fmt.Errorf("--junit: %w", cerr)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		o.JUnit = f
	}
	passed, err := ruletest.Run(o, c.Files)
	if err == nil && !passed {
		err = flags.Exit(exitFailed)
	}
	return err
}
