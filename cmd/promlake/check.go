package main

import (
	"log/slog"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/promconfig"
	"github.com/promlake/promlake/internal/query"
)

// checkCmd checks files for promlake serve --config.file as promtool does: exit code 1 for files
// that a server refuses, and 3 for doubtful things with --lint-fatal. It also checks servers.
type checkCmd struct {
	Config checkConfigCmd `cmd:"" help:"Check Prometheus configuration files and the rule files that they name."`
	Rules  checkRulesCmd  `cmd:"" help:"Check rule files."`
	Ready  checkReadyCmd  `cmd:"" help:"Check that a server is ready."`
}

const (
	exitFailed = 1
	exitLint   = 3
)

type checkConfigCmd struct {
	Files      []string      `arg:"" name:"file" help:"Configuration files."`
	SyntaxOnly bool          `name:"syntax-only" help:"Ignore the existence and contents of the files that the configuration names."`
	Lint       string        `name:"lint" default:"duplicate-rules" enum:"all,duplicate-rules,too-long-scrape-interval,none" help:"Doubtful things to report, one of ${enum}."`
	LintFatal  bool          `name:"lint-fatal" help:"End with exit code 3 if there is something doubtful."`
	Ignore     bool          `name:"ignore-unknown-fields" help:"Ignore unknown fields in rule files."`
	Lookback   time.Duration `name:"lookback" default:"5m" help:"The --query.lookback-delta of the server, for too-long-scrape-interval."`
}

// Run checks and prints.
func (c *checkConfigCmd) Run(io flags.Streams) error {
	checker := newChecker(io, c.Lint, c.Ignore)
	checker.SyntaxOnly = c.SyntaxOnly
	if c.Lint == "all" || c.Lint == "too-long-scrape-interval" {
		checker.Lint.Lookback = c.Lookback
	}
	var all promconfig.Result
	for _, f := range c.Files {
		r := checker.Config(f)
		all.Errors, all.Lints = all.Errors || r.Errors, all.Lints || r.Lints
	}
	return exit(all, c.LintFatal)
}

type checkRulesCmd struct {
	Files     []string `arg:"" name:"file" help:"Rule files."`
	Lint      string   `name:"lint" default:"duplicate-rules" enum:"all,duplicate-rules,none" help:"Doubtful things to report, one of ${enum}."`
	LintFatal bool     `name:"lint-fatal" help:"End with exit code 3 if there is something doubtful."`
	Ignore    bool     `name:"ignore-unknown-fields" help:"Ignore unknown fields."`
}

// Run checks and prints.
func (c *checkRulesCmd) Run(io flags.Streams) error {
	return exit(newChecker(io, c.Lint, c.Ignore).Rules(c.Files), c.LintFatal)
}

func newChecker(io flags.Streams, lint string, ignore bool) *promconfig.Checker {
	return &promconfig.Checker{
		Lint:                promconfig.Lint{DuplicateRules: lint == "all" || lint == "duplicate-rules"},
		IgnoreUnknownFields: ignore,
		Parser:              parser.NewParser(query.ParserOptions()),
		Out:                 io.Out, Err: io.Err,
		Logger: slog.New(slog.NewTextHandler(io.Err, nil)),
	}
}

// exit is the end of the program that a result asks for. What is wrong was printed.
func exit(r promconfig.Result, lintFatal bool) error {
	switch {
	case r.Errors:
		return flags.Exit(exitFailed)
	case r.Lints && lintFatal:
		return flags.Exit(exitLint)
	}
	return nil
}
