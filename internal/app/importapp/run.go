package importapp

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/objstore/probe"
	"github.com/promlake/promlake/internal/objstore/storeurl"
)

// Outcome is what an import did, or what a dry run would do.
type Outcome struct {
	settings Settings
	plan     bulk.Plan
	found    found
	report   bulk.Report
	took     time.Duration
	preview  *preview // of a dry run
}

// Blocks imports the blocks of a TSDB. now is the clock that measures the duration. The outcome is
// valid with an error of the import too.
func Blocks(ctx context.Context, s Settings, t TSDB, now func() time.Time, progress bulk.Progress) (*Outcome, error) {
	set, err := s.Bulk()
	if err != nil {
		return nil, err
	}
	o := &Outcome{settings: s}
	if o.found, err = t.find(ctx, s.TempDir); err != nil {
		return nil, err
	}
	if s.DryRun && storeurl.Exists(s.Store) != nil { // nothing is there yet
		if o.plan, err = bulk.MakePlan(set, now(), o.found.inputs, nil); err == nil {
			o.preview, err = look(ctx, &o.plan)
		}
		return o, err
	}
	store, err := storeurl.Open(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	return o, o.run(ctx, set, store, now, progress)
}

// BlocksInto is Blocks for a store that is open. s.Store is not used.
func BlocksInto(ctx context.Context, store objstore.Store, s Settings, t TSDB, now func() time.Time, progress bulk.Progress) (*Outcome, error) {
	set, err := s.Bulk()
	if err != nil {
		return nil, err
	}
	o := &Outcome{settings: s}
	if o.found, err = t.find(ctx, s.TempDir); err != nil {
		return nil, err
	}
	return o, o.run(ctx, set, store, now, progress)
}

// run plans the import into a store and does it, unless it is a dry run.
func (o *Outcome) run(ctx context.Context, set bulk.Settings, store objstore.Store, now func() time.Time, progress bulk.Progress) error {
	begin := now()
	if !o.settings.DryRun {
		if err := probe.Check(ctx, store); err != nil {
			return err
		}
	}
	records, err := bulk.Records(ctx, store, o.settings.Tenant)
	if err != nil {
		return err
	}
	at, err := store.Now(ctx)
	if err != nil {
		return err
	}
	if o.plan, err = bulk.MakePlan(set, at, o.found.inputs, records); err != nil {
		return err
	}
	if o.settings.DryRun {
		if o.preview, err = look(ctx, &o.plan); err == nil {
			err = o.preview.compare(ctx, store, o.settings.Tenant, &o.plan)
		}
		return err
	}
	o.report, err = bulk.Run(ctx, set, store, o.settings.Tenant, o.plan, progress)
	o.took = now().Sub(begin)
	if err != nil {
		return fmt.Errorf("%w\nthe import is not complete: the same command continues it", err)
	}
	return nil
}

// Text describes the outcome.
func (o *Outcome) Text() string {
	table := human.Table{Left: 2}
	table.Row("blocks found", human.Count(int64(len(o.found.inputs))))
	table.Row("their size", human.Bytes(o.found.bytes))
	for _, s := range o.found.skipped {
		table.Row("not read", s)
	}
	if o.plan.Present > 0 {
		table.Row("samples imported before", "about "+human.Count(o.plan.Present))
	}
	if o.plan.Expired > 0 {
		table.Row("samples past the retention", "about "+human.Count(o.plan.Expired))
	}
	if o.preview != nil {
		o.preview.rows(&table, o)
		return table.String()
	}
	table.Row("blocks written", human.Count(o.report.Blocks))
	if o.report.Present > 0 {
		table.Row("blocks that were there", human.Count(o.report.Present))
	}
	table.Row("samples written", human.Count(o.report.Samples))
	if o.report.Equal > 0 {
		table.Row("samples of overlapping blocks left out", human.Count(o.report.Equal))
	}
	if n := o.found.corrupt.Load(); n > 0 {
		table.Row("corrupt chunks left out", human.Count(n))
	}
	table.Row("bytes written", human.Bytes(o.report.Bytes))
	table.Row("time", o.took.Round(time.Millisecond).String())
	table.Row("speed", human.PerSecond(o.report.Samples, o.took)+" samples")
	return table.String()
}

// Report returns the figures of an import that ran.
func (o *Outcome) Report() bulk.Report { return o.report }
