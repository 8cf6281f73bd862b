package main

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/query/explain"
)

type translateCmd struct {
	Expr string `arg:"" help:"PromQL expression."`

	Time     string        `name:"time" placeholder:"T" help:"Evaluation time of an instant query: RFC 3339, seconds since 1970, or now-1h. Default: now."`
	Start    string        `name:"start" placeholder:"T" help:"First step of a range query."`
	End      string        `name:"end" placeholder:"T" help:"Last step of a range query. Default: now."`
	Step     time.Duration `name:"step" placeholder:"DURATION" help:"Distance of a range query's steps. Default: 250 steps, at least 1s apart."`
	Lookback time.Duration `name:"lookback" default:"5m" min:"1ms" help:"How far back an instant selector looks for a sample; the server's --query.lookback-delta."`
}

// Run prints the statement, and on the standard error output what it leaves to promql().
func (c *translateCmd) Run(_ context.Context, io flags.Streams) error {
	q, err := newQuestion(c.Expr, c.Time, c.Start, c.End, c.Step, time.Now().Truncate(time.Second))
	if err != nil {
		return err
	}
	s, err := explain.Translate(explain.Question{Text: q.expr, Start: q.start, End: q.end, Step: q.step, Lookback: c.Lookback})
	if err != nil {
		return err
	}
	for _, kept := range s.Kept {
		if _, err := fmt.Fprintln(io.Err, "left to promql():", kept); err != nil {
			return fmt.Errorf("print note: %w", err)
		}
	}
	if _, err := fmt.Fprintln(io.Out, s.SQL+";"); err != nil {
		return fmt.Errorf("print the statement: %w", err)
	}
	return nil
}
