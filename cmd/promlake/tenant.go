package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	smithytime "github.com/aws/smithy-go/time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/tenantapp"
	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

type tenantCmd struct {
	List   tenantListCmd   `cmd:"" help:"Print the tenants that have objects, one a line."`
	Delete tenantDeleteCmd `cmd:"" help:"Remove everything of a tenant, or print with --dry-run what that is."`
}

type tenantListCmd struct {
	Store string `name:"store" default:"file://./data" help:"Object store to read."`

	Log telemetry.LogSettings `embed:""`
}

// Run lists the tenants.
func (c *tenantListCmd) Run(ctx context.Context, io flags.Streams) error {
	return withStore(ctx, io, c.Log, c.Store, func(store objstore.Store) error {
		tenants, err := catalog.Tenants(ctx, store)
		if err == nil {
			tenants, err = rulestore.AddTenants(ctx, store, tenants)
		}
		if err != nil {
			return err
		}
		for _, t := range tenants {
			if _, err := fmt.Fprintln(io.Out, t); err != nil {
				return fmt.Errorf("print tenants: %w", err)
			}
		}
		return nil
	})
}

type tenantDeleteCmd struct {
	Tenant string        `arg:"" help:"Tenant to remove."`
	Store  string        `name:"store" default:"file://./data" help:"Object store of the tenant."`
	DryRun bool          `name:"dry-run" help:"Only print what would be removed and what that costs."`
	Yes    bool          `name:"yes" help:"Remove it. There is no way back."`
	Quiet  time.Duration `name:"quiet" default:"10m" help:"Age that the tenant's newest segment must have."`
	Force  bool          `name:"force" help:"Remove the tenant even if its newest segment is younger than --quiet."`
	Wait   bool          `name:"wait" help:"Wait until the manifest may go, too: 20 minutes after the last data went."`
	Region string        `name:"region" help:"Region whose prices are used, if AWS_REGION is not set."`

	Log telemetry.LogSettings `embed:""`
}

// Run prints the tenant's objects, and removes them on request.
func (c *tenantDeleteCmd) Run(ctx context.Context, io flags.Streams) error {
	if _, err := tenant.Parse(c.Tenant); err != nil || c.Tenant == "" {
		return errors.Join(errors.New("delete tenant: want the name of a tenant"), err)
	}
	if c.Quiet <= 0 {
		return fmt.Errorf("delete tenant: quiet: want more than 0s, got %s; --force leaves the check out", c.Quiet)
	}
	return withStore(ctx, io, c.Log, c.Store, func(store objstore.Store) error {
		survey, err := tenantapp.Look(ctx, store, c.Tenant)
		if err != nil {
			return err
		}
		text, err := c.preview(survey)
		if err == nil {
			err = io.Print("preview", text)
		}
		if err != nil {
			return err
		}
		switch {
		case survey.Total().Objects == 0 || c.DryRun:
			return nil
		case !c.Yes:
			return errors.New("delete tenant: nothing was removed: add --yes to remove it, or --dry-run to only look")
		}
		quiet := c.Quiet
		if c.Force {
			quiet = 0
		}
		for {
			r, err := tenantapp.Delete(ctx, store, c.Tenant, quiet)
			text := fmt.Sprintf("removed %d objects\n", r.Deleted)
			if !r.KeptUntil.IsZero() {
				text += fmt.Sprintf("the manifest stays until %s, so that no compaction under way brings data back: repeat the command then, or give it --wait\n", r.KeptUntil.Format(time.RFC3339))
			}
			if err := errors.Join(err, io.Print("result", text)); err != nil || r.KeptUntil.IsZero() || !c.Wait {
				return err
			}
			if err := smithytime.SleepWithContext(ctx, time.Until(r.KeptUntil)); err != nil {
				return err
			}
		}
	})
}

// preview describes a tenant's objects and, in a bucket, the cost of their removal.
func (c *tenantDeleteCmd) preview(s *tenantapp.Survey) (string, error) {
	total := s.Total()
	if total.Objects == 0 {
		return fmt.Sprintf("the store has nothing of tenant %s\n", c.Tenant), nil
	}
	table := human.Table{Left: 1}
	table.Row("TENANT "+c.Tenant, "OBJECTS", "BYTES")
	for _, row := range []struct {
		name string
		tenantapp.Pile
	}{{"segments", s.Segments}, {"blocks", s.Blocks}, {"manifest", s.Manifest}, {"earlier manifests", s.History}, {"other", s.Other}, {"all", total}} {
		table.Row(row.name, human.Count(row.Objects), human.Bytes(row.Bytes))
	}
	text := table.String()
	if !strings.HasPrefix(c.Store, "s3://") {
		return text, nil
	}
	prices, err := cost.ReadPrices(cmp.Or(os.Getenv("AWS_REGION"), c.Region))
	if err != nil {
		return "", err
	}
	p := s.Price(prices)
	return text + fmt.Sprintf("requests: %d listings, %d puts, %d gets, %d deletions (free): $%.6f; storage that ends: $%.4f a month (%s, Amazon S3 Standard)\n",
		p.Lists, p.Puts, p.Gets, p.Deletes, p.Dollars, p.Monthly, prices.Region), nil
}
