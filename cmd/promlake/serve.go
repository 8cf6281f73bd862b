package main

import (
	"context"
	"slices"

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

type configCmd struct {
	PrintDefaults bool `name:"print-defaults" help:"Print the defaults of all settings instead."`

	Settings app.Settings `embed:""`
}

// Run prints the settings that promlake serve would have as a settings file.
func (c *configCmd) Run(io flags.Streams, vs flags.Values) error {
	vs = slices.DeleteFunc(vs, func(v flags.Value) bool { return v.Name == "print-defaults" || v.Name == flags.SettingsFile })
	text := vs.File()
	if c.PrintDefaults {
		text = vs.Defaults()
	}
	return io.Print("settings", text)
}
