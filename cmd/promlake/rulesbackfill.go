package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/app/rulesapp"
	"github.com/promlake/promlake/internal/base/telemetry"
)

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
	now := time.Now()
	if b.Start, err = parseTime("start", c.Start, now); err != nil {
		return err
	}
	if b.End, err = parseTime("end", c.End, now); err != nil {
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
		if _, perr := fmt.Fprint(io.Out, out.Text()); perr != nil {
			return errors.Join(err, fmt.Errorf("print result: %w", perr))
		}
		return err
	})
}
