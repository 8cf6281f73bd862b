package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/app/rulesapp"
	"github.com/promlake/promlake/internal/base/telemetry"
)

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
	r := rulesapp.Replay{Source: c.Source, Alert: c.Alert, Tenant: c.Tenant, Recorded: c.Recorded, MemoryBytes: c.Memory}
	if r.Tenant == "" {
		r.Tenant = tenant.Default
	}
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
		if _, err := fmt.Fprintf(io.Out, "%s%d evaluations, %d episodes, %d of them fired\n", table.String(), out.Evaluations, len(out.Episodes), fired); err != nil {
			return fmt.Errorf("print episodes: %w", err)
		}
		return nil
	})
}

// withLake calls f with a store's query stage.
func withLake(
	ctx context.Context, io flags.Streams, vs flags.Values, store string, log telemetry.LogSettings, q queryapp.Settings, f func(*rulesapp.Lake) error,
) (err error) {
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
	defer func() { err = errors.Join(err, end()) }()
	return f(l)
}

// digits of values in tables.
const digits = 6

// episode is an episode as JSON, whose value is text, because JSON has no NaN.
type episode struct {
	rulesapp.Episode
	Value string `json:"value"`
}
