package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/compact/publish"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

type publishCmd struct {
	Store    string `name:"store" default:"file://./data" help:"Object store whose blocks are published."`
	Tenant   string `name:"tenant" help:"Tenant to publish. Default: all."`
	Location string `name:"location" placeholder:"URI" help:"Where other engines find the store, such as s3a://bucket/prefix. Default: the URL of --store without parameters."`
	JSON     bool   `name:"json" help:"Print JSON for scripts."`

	Log telemetry.LogSettings `embed:""`
}

// Run publishes and prints where the tables are. A tenant that fails does not stop the others.
func (c *publishCmd) Run(ctx context.Context, io flags.Streams) error {
	location, err := compactapp.Locate(c.Location, c.Store)
	if err != nil {
		return err
	}
	return withStore(ctx, io, c.Log, c.Store, func(store objstore.Store) error {
		tenants, err := c.tenants(ctx, store)
		if err != nil {
			return err
		}
		p := publish.New(store, publish.Settings{Location: location})
		reports, errs := []publish.Report{}, []error(nil)
		for _, t := range tenants {
			r, err := p.Publish(ctx, t)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			reports = append(reports, r)
		}
		return errors.Join(append(errs, printReport(io, c.JSON, reports, func() string { return published(reports) }))...)
	})
}

func (c *publishCmd) tenants(ctx context.Context, store objstore.Store) ([]string, error) {
	if c.Tenant == "" {
		return catalog.Tenants(ctx, store)
	}
	if _, err := tenant.Parse(c.Tenant); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	m, _, err := catalog.ReadManifest(ctx, store, c.Tenant)
	if err != nil {
		return nil, err
	}
	if m.Generation == 0 {
		return nil, fmt.Errorf("publish: the store has no blocks of tenant %s: compaction makes them", c.Tenant)
	}
	return []string{c.Tenant}, nil
}

// published describes the tables of tenants.
func published(reports []publish.Report) string {
	if len(reports) == 0 {
		return "the store has no tenant\n"
	}
	table := human.Table{Left: 2}
	table.Row("TENANT", "TABLE", "FILES", "ROWS", "VERSION", " METADATA")
	notes := ""
	for _, r := range reports {
		for _, t := range r.Tables {
			metadata := cmp.Or(t.Metadata, "none: no block to publish yet")
			table.Row(r.Tenant, t.Name, human.Count(t.Files), human.Count(t.Rows), fmt.Sprint(t.Version), " "+metadata)
		}
		if r.Waiting > 0 {
			notes += fmt.Sprintf("%s: %d blocks wait for their merge\n", r.Tenant, r.Waiting)
		}
		if r.Old > 0 {
			notes += fmt.Sprintf("%s: %d blocks of an earlier version of promlake are left out\n", r.Tenant, r.Old)
		}
		if r.Tombstones > 0 {
			notes += fmt.Sprintf("%s: %d deletions take effect with the next compaction\n", r.Tenant, r.Tombstones)
		}
	}
	return table.String() + notes
}
