package main

import (
	"context"
	"time"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/inspectapp"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
)

type inspectCmd struct {
	Store  string `name:"store" default:"file://./data" help:"Object store to read."`
	Tenant string `name:"tenant" help:"Tenant to describe. Default: all."`
	JSON   bool   `name:"json" help:"Print JSON for scripts."`
	Now    string `name:"now" placeholder:"T" help:"Moment at which the next jobs are planned: RFC 3339, seconds since 1970, or now-1h. Default: now."`

	Log     telemetry.LogSettings `embed:""`
	Compact compactapp.Settings   `embed:"" group:"Compaction, for what comes next"`
}

// Run inspects and prints.
func (c *inspectCmd) Run(ctx context.Context, io flags.Streams) error {
	now, err := parseTime("now", c.Now, time.Now())
	if err != nil {
		return err
	}
	var r inspectapp.Report
	err = withStore(ctx, io, c.Log, c.Store, func(store objstore.Store) (err error) {
		r, err = inspectapp.Inspect(ctx, store, c.Tenant, c.Compact.Stage(), now)
		return err
	})
	if err != nil {
		return err
	}
	return printReport(io, c.JSON, r, r.Text)
}
