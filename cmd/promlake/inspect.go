package main

import (
	"context"
	"errors"
	"time"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/doctorapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/inspectapp"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
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

type doctorCmd struct {
	Store      string `name:"store" default:"file://./data" help:"Object store to examine."`
	Check      bool   `name:"store-check" default:"true" negatable:"" help:"First check that the store honours conditional writes and lists what was written."`
	Tenant     string `name:"tenant" help:"Tenant to examine. Default: all."`
	Verify     bool   `name:"verify" help:"Read every byte of the live objects and hold it against its checksum. Without it, only manifests, segments' footers and meta.json are read."`
	Quarantine bool   `name:"quarantine" help:"Copy damaged objects to quarantine/ and take them out of what queries and the compactor read."`
	JSON       bool   `name:"json" help:"Print JSON for scripts."`

	Log telemetry.LogSettings `embed:""`
}

// errDamaged ends the program with 1 after the report.
var errDamaged = errors.New("the store has objects that count and cannot be read")

// Run examines and prints.
func (c *doctorCmd) Run(ctx context.Context, io flags.Streams) error {
	var r doctorapp.Report
	err := withStore(ctx, io, c.Log, c.Store, func(store objstore.Store) (err error) {
		if c.Check {
			err = probe.Check(ctx, store)
		}
		if err == nil {
			r, err = doctorapp.Examine(ctx, store, doctorapp.Settings{Tenant: c.Tenant, Verify: c.Verify, Quarantine: c.Quarantine})
		}
		return err
	})
	if err != nil {
		return err
	}
	err = printReport(io, c.JSON, r, r.Text)
	if err == nil && !r.Healthy() {
		return errDamaged
	}
	return err
}
