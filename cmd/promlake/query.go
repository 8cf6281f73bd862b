package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/telemetry"
)

type queryCmd struct {
	Expr string `arg:"" help:"PromQL expression."`

	Store   string        `name:"store" default:"file://./data" help:"Object store to read; no server is needed."`
	URL     string        `name:"url" placeholder:"URL" help:"Server to ask instead of a store."`
	Token   string        `name:"token" placeholder:"TOKEN" secret:"" help:"Token for the server; better set by its variable, for arguments can be seen in process lists."`
	Tenant  string        `name:"tenant" placeholder:"NAME" help:"Tenant whose data is asked. Default: the token's, if it has one, otherwise anonymous."`
	Time    string        `name:"time" placeholder:"T" help:"Evaluation time of an instant query: RFC 3339, seconds since 1970, or now-1h. Default: now."`
	Start   string        `name:"start" placeholder:"T" help:"First step of a range query."`
	End     string        `name:"end" placeholder:"T" help:"Last step of a range query. Default: now."`
	Step    time.Duration `name:"step" placeholder:"DURATION" help:"Distance of a range query's steps. Default: 250 steps, at least 1s apart."`
	Explain bool          `name:"explain" help:"Print how the query is answered, with the SQL that DuckDB runs, instead of the answer."`
	Analyze bool          `name:"analyze" help:"With --explain: run the query, and print times and counts of its parts."`
	Format  string        `name:"format" default:"table" enum:"table,json" help:"How the answer is printed: ${enum}."`

	Log   telemetry.LogSettings `embed:""`
	Query queryapp.Settings     `embed:"" group:"Query of a store"`
}

// Run asks and prints.
func (c *queryCmd) Run(ctx context.Context, io flags.Streams, vs flags.Values) (err error) {
	q, err := newQuestion(c.Expr, c.Time, c.Start, c.End, c.Step, time.Now())
	if err != nil {
		return err
	}
	if c.Analyze && !c.Explain {
		return errors.New("--analyze belongs to --explain")
	}
	from := source{c.URL, c.Store, c.Tenant, c.Token, c.Log, c.Query}
	client, done, err := from.client(ctx, io, vs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if c.Explain {
		return q.explain(ctx, client, from.address(), c.Analyze, io.Out, c.Format)
	}
	a, err := q.ask(ctx, client, from.address())
	if err != nil {
		return err
	}
	for _, note := range slices.Concat(a.Warnings, a.Infos) {
		if _, err := fmt.Fprintln(io.Err, "note:", note); err != nil {
			return fmt.Errorf("print note: %w", err)
		}
	}
	if c.Format == "json" {
		enc := json.NewEncoder(io.Out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(a.Data); err != nil {
			return fmt.Errorf("print answer: %w", err)
		}
		return nil
	}
	v, err := a.Data.value()
	if err != nil {
		return err
	}
	if err := printTable(io.Out, v); err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	return nil
}
