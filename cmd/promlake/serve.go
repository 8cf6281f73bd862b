package main

import (
	"context"

	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/base/telemetry"
)

type serveCmd struct {
	Settings app.Settings `embed:""`
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, io flags.Streams, vs flags.Values) error {
	logger, err := telemetry.NewLogger(io.Err, c.Settings.Process.Log)
	if err != nil {
		return err
	}
	c.Settings.Process.Flags = vs
	return app.Run(ctx, c.Settings, io.Out, logger)
}
