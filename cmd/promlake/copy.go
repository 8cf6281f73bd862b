package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/copyapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
)

type copyCmd struct {
	From     string        `name:"from" placeholder:"URL" required:"" help:"Object store to copy. It is only read, and may be in use."`
	To       string        `name:"to" placeholder:"URL" required:"" help:"Object store that gets the copy; a missing directory is made. It must have nothing of the copied tenants, unless an earlier copy was cut short, or follows with --follow."`
	Tenant   []string      `name:"tenant" placeholder:"NAME" help:"Tenants to copy. Default: all."`
	Follow   bool          `name:"follow" help:"Keep the destination up to date until the command is ended: a replica, of which a server may start at any moment. Logs a line for each pass."`
	Interval time.Duration `name:"interval" default:"1m" above:"0" help:"With --follow: time from the end of one pass to the start of the next."`

	Log telemetry.LogSettings `embed:""`
}

// Run copies tenant by tenant and prints what that did, also when some of it failed. With --follow
// it logs that until ctx ends.
func (c *copyCmd) Run(ctx context.Context, io flags.Streams) (err error) {
	if c.From == c.To {
		return errors.New("copy: --from and --to are one store")
	}
	for _, t := range c.Tenant {
		if _, err := tenant.Parse(t); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
	}
	logger, err := telemetry.NewLogger(io.Err, c.Log)
	if err != nil {
		return err
	}
	if c.Follow {
		return copyapp.Follow(ctx, copyapp.Settings{From: c.From, To: c.To, Tenants: c.Tenant}, c.Interval, logger)
	}
	begin := time.Now()
	return copyapp.Run(ctx, copyapp.Settings{From: c.From, To: c.To, Tenants: c.Tenant}, logger,
		func(from, to objstore.Store, tenants []string) error {
			table := human.Table{Left: 1}
			table.Row("TENANT", "COPIED", "BYTES", "THERE ALREADY", "GENERATION")
			var errs []error
			for _, t := range tenants {
				r, err := copyapp.Tenant(ctx, from, to, t)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				table.Row(t, human.Count(r.Copied), human.Bytes(r.Bytes), human.Count(r.Present), fmt.Sprint(r.Generation))
			}
			text := fmt.Sprintf("%scopied %d of %d tenants in %s\n", table.String(), len(tenants)-len(errs), len(tenants), time.Since(begin).Round(time.Millisecond))
			return errors.Join(append(errs, io.Print("result", text))...)
		})
}
