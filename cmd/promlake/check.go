package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
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

// checkReadyCmd asks a server whether it is ready. Images have it as their health check.
type checkReadyCmd struct {
	URL     string        `arg:"" optional:"" name:"url" help:"URL of the server. Default: that of --listen on this machine."`
	Listen  string        `name:"listen" default:"127.0.0.1:9009" help:"Address on which the server of this machine serves, as of promlake serve."`
	Timeout time.Duration `name:"timeout" default:"5s" above:"0" help:"Longest time until the answer."`
}

// maxReason is how much of a refusal is printed, in bytes.
const maxReason = 4 << 10

// Run prints what the server says. It fails unless that is 200.
func (c *checkReadyCmd) Run(ctx context.Context, out flags.Streams) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	base := c.URL
	if base == "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return fmt.Errorf("read --listen: %w", err)
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		base = "http://" + net.JoinHostPort(host, port)
	}
	address, err := url.JoinPath(base, "/-/ready")
	if err != nil {
		return fmt.Errorf("read the URL: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("read the URL: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReason))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", address, err)
	}
	reason := strings.TrimSpace(string(text))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", address, resp.Status, reason)
	}
	_, err = fmt.Fprintln(out.Out, reason)
	return err
}
