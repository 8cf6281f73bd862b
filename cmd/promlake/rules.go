package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/app/rulesapp"
	"github.com/promlake/promlake/internal/base/telemetry"
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

type rulesBackfillCmd struct {
	rulesapp.Source

	Start string `name:"start" required:"" placeholder:"T" help:"First evaluation: RFC 3339, seconds since 1970, or now-1h."`
	End   string `name:"end" placeholder:"T" help:"Last evaluation. Default: now."`

	Attempt int `name:"attempt" default:"1" min:"1" max:"1000" help:"Raise it to evaluate again what a backfill of the same rules has done, such as after samples arrived late, or to let the results of changed rules win."`

	Log    telemetry.LogSettings `embed:""`
	Import importapp.Settings    `embed:""`
	Query  queryapp.Settings     `embed:"" group:"Query of a store"`
}

// Run evaluates, writes blocks, and prints what that did, also when it failed midway.
func (c *rulesBackfillCmd) Run(ctx context.Context, io flags.Streams, vs flags.Values) (err error) {
	b := rulesapp.Backfill{Source: c.Source, Import: c.Import, Attempt: c.Attempt}
	if b.Start, b.End, err = parseRange(c.Start, c.End, time.Now()); err != nil {
		return err
	}
	p := newPace(io, "evaluations")
	defer p.end()
	return withLake(ctx, io, vs, c.Import.Store, c.Log, c.Query, func(l *rulesapp.Lake) error {
		out, err := l.Backfill(ctx, b, time.Now, p.see)
		p.end()
		if out == nil {
			return err
		}
		return errors.Join(err, io.Print("result", out.Text()))
	})
}

type rulesReplayCmd struct {
	Alert string `arg:"" help:"Name of the alert."`

	rulesapp.Source

	Store    string `name:"store" default:"file://./data" help:"Object store to read; no server is needed."`
	Tenant   string `name:"tenant" placeholder:"NAME" help:"Tenant whose data is read. Default: anonymous."`
	Start    string `name:"start" required:"" placeholder:"T" help:"First evaluation, before which no alert is active: RFC 3339, seconds since 1970, or now-1h."`
	End      string `name:"end" placeholder:"T" help:"Last evaluation. Default: --as-of, otherwise now."`
	AsOf     string `name:"as-of" placeholder:"T" help:"Read the data as it stood then, without what was written or deleted later."`
	Recorded bool   `name:"recorded" help:"Read the results of recording rules, and other alerts, from the store instead of computing them."`
	Memory   int64  `name:"rules.max-memory" type:"bytes" default:"1GiB" min:"1" help:"Memory for the results of recording rules."`
	Format   string `name:"format" default:"table" enum:"table,json" help:"How the episodes are printed: ${enum}."`

	Log   telemetry.LogSettings `embed:""`
	Query queryapp.Settings     `embed:"" group:"Query of a store"`
}

// Run replays and prints.
func (c *rulesReplayCmd) Run(ctx context.Context, io flags.Streams, vs flags.Values) (err error) {
	now := time.Now()
	r := rulesapp.Replay{Source: c.Source, Alert: c.Alert, Tenant: cmp.Or(c.Tenant, tenant.Default), Recorded: c.Recorded, MemoryBytes: c.Memory}
	if r.Start, err = parseTime("start", c.Start, now); err != nil {
		return err
	}
	end := now
	if c.AsOf != "" {
		if r.AsOf, err = parseTime("as-of", c.AsOf, now); err != nil {
			return err
		}
		end = r.AsOf
	}
	if c.End != "" {
		if end, err = parseTime("end", c.End, now); err != nil {
			return err
		}
	}
	r.End = end
	return withLake(ctx, io, vs, c.Store, c.Log, c.Query, func(l *rulesapp.Lake) error {
		out, err := l.Replay(ctx, r, now)
		if err != nil {
			return err
		}
		if out.Note != "" {
			if _, err := fmt.Fprintln(io.Err, "note:", out.Note); err != nil {
				return fmt.Errorf("print note: %w", err)
			}
		}
		if c.Format == "json" {
			e := json.NewEncoder(io.Out)
			e.SetIndent("", "  ")
			// The JSON has values as texts, because NaN and infinities are no JSON numbers.
			all := make([]episode, len(out.Episodes))
			for i, one := range out.Episodes {
				all[i] = episode{one, strconv.FormatFloat(one.Value, 'g', -1, 64)}
			}
			return e.Encode(all)
		}
		table := human.Table{Left: 5}
		table.Row("PENDING SINCE", "FIRING AT", "RESOLVED AT", "VALUE", "LABELS")
		at := func(t time.Time, none string) string {
			if t.IsZero() {
				return none
			}
			return human.Time(t.UnixMilli())
		}
		fired := 0
		for _, e := range out.Episodes {
			if !e.Firing.IsZero() {
				fired++
			}
			table.Row(at(e.Since, ""), at(e.Firing, "never"), at(e.Resolved, "still active"), strconv.FormatFloat(e.Value, 'g', digits, 64), e.Labels.String())
		}
		return io.Print("episodes", fmt.Sprintf("%s%d evaluations, %d episodes, %d of them fired\n", table.String(), out.Evaluations, len(out.Episodes), fired))
	})
}

// withLake calls f with a store's query stage.
func withLake(
	ctx context.Context, io flags.Streams, vs flags.Values, store string, log telemetry.LogSettings, q queryapp.Settings, f func(*rulesapp.Lake) error,
) error {
	logger, err := telemetry.NewLogger(io.Err, log)
	if err != nil {
		return err
	}
	p := process.DefaultSettings()
	p.Store, p.Flags = store, vs
	l, end, err := rulesapp.Open(ctx, p, q, logger)
	if err != nil {
		return err
	}
	return errors.Join(f(l), end())
}

// digits of values in tables.
const digits = 6

// episode is an episode as JSON, whose value is text, because JSON has no NaN.
type episode struct {
	rulesapp.Episode
	Value string `json:"value"`
}
