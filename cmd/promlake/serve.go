package main

import (
	"context"

	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/demo"
	"github.com/promlake/promlake/internal/telemetry"
)

type serveCmd struct {
	Process      process.Settings    `embed:"" group:"Process"`
	Ingest       ingestapp.Flags     `embed:"" group:"Ingest"`
	Query        queryapp.Flags      `embed:"" group:"Query"`
	Schedule     compactapp.Schedule `embed:"" group:"Compaction"`
	Compact      compactapp.Flags    `embed:"" group:"Compaction"`
	Demo         bool                `name:"demo" group:"Demo" help:"Feed this machine's own metrics through remote_write and print example queries."`
	DemoSettings demo.Settings       `embed:"" group:"Demo"`
}

func newServeCmd() serveCmd {
	return serveCmd{
		Process:      process.DefaultSettings(),
		Ingest:       ingestapp.NewFlags(),
		Query:        queryapp.NewFlags(),
		Schedule:     compactapp.NewSchedule(),
		Compact:      compactapp.NewFlags(),
		DemoSettings: demo.DefaultSettings(),
	}
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, io flags.Streams, vs flags.Values) error {
	logger, err := telemetry.NewLogger(io.Err, c.Process.Log)
	if err != nil {
		return err
	}
	s := app.Settings{Process: c.Process, Ingest: c.Ingest.Settings(), Query: c.Query.Settings(vs)}
	if c.Schedule.Enabled {
		compaction := c.Compact.Settings()
		compaction.Interval = c.Schedule.Interval
		s.Compact = &compaction
	}
	if c.Demo {
		s.Demo = &c.DemoSettings
	}
	return app.Run(ctx, s, io.Out, logger)
}
