package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/telemetry"
)

const (
	// compactGCPercent makes the process smaller. What a job holds has few pointers, so that
	// collections are cheap.
	compactGCPercent = 25
	// compactReserve is the inverse of the part of the memory for the sources of a job up to which
	// the heap grows without a collection: while a job reads its sources, most of the heap is
	// garbage of those before.
	compactReserve = 4
)

type compactCmd struct {
	Store     string `name:"store" default:"file://./data" help:"Object store to compact."`
	Check     bool   `name:"store-check" default:"true" negatable:"" help:"First check that the store honours conditional writes and lists what was written."`
	Tenant    string `name:"tenant" help:"Tenant to compact. Default: all."`
	UntilIdle bool   `name:"until-idle" help:"Go on until nothing is left that need not wait. Default: one cycle."`
	Now       string `name:"now" placeholder:"T" help:"Compact as at this time, delays and retention included: RFC 3339, seconds since 1970, or now-1h. For tests on a store that nobody else uses."`

	Log     telemetry.LogSettings `embed:""`
	Compact compactapp.Settings   `embed:"" group:"Compaction"`
}

// Run compacts and prints what that did, also when some of it failed.
func (c *compactCmd) Run(ctx context.Context, io flags.Streams) (err error) {
	begin := time.Now()
	at, err := parseTime("now", c.Now, begin)
	if err != nil {
		return err
	}
	b := newBar(io.Err)
	out := io.Err
	if b != nil {
		out = b // the log scrolls by above the bar
	}
	logger, err := telemetry.NewLogger(out, c.Log)
	if err != nil {
		return err
	}
	p := process.DefaultSettings()
	p.Store, p.CheckStore = c.Store, c.Check
	if os.Getenv("GOGC") == "" {
		p.GCPercent, p.HeapReserve = compactGCPercent, c.Compact.MemoryBytes/compactReserve
	}
	d, err := compactapp.Open(ctx, p, c.Tenant, c.Compact, logger, at.Sub(begin))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	err = c.compact(ctx, d, b)
	return errors.Join(err, io.Print("summary", summary(d.Totals(), time.Since(begin))))
}

func (c *compactCmd) compact(ctx context.Context, d *compactapp.Driven, b *bar) error {
	if !c.UntilIdle {
		return d.Cycle(ctx)
	}
	if b == nil {
		return d.UntilIdle(ctx, nil)
	}
	w := &watch{bar: b, begin: time.Now(), jobs: map[string]*progress{}}
	defer b.show(0, 0, "")
	return d.UntilIdle(ctx, w.see)
}

// summary writes what was done in how much time.
func summary(t compactapp.Totals, took time.Duration) string {
	table := human.Table{Left: 2}
	table.Row("jobs done", human.Count(t.Jobs))
	table.Some("jobs that another compactor did", t.Conflicts)
	table.Some("jobs that failed", t.Failed)
	table.Row("samples read", human.Count(t.SamplesRead))
	table.Row("samples written", human.Count(t.SamplesWritten))
	table.Some("samples deleted", t.SamplesDeleted)
	table.Row("bytes read", human.Bytes(t.BytesRead))
	table.Row("bytes written", human.Bytes(t.BytesWritten))
	if t.ObjectsRemoved > 0 {
		table.Row("garbage removed", fmt.Sprintf("%s in %d objects", human.Bytes(t.BytesRemoved), t.ObjectsRemoved))
	}
	table.Row("time", took.Round(time.Millisecond).String())
	table.Row("speed", human.PerSecond(t.SamplesRead, took)+" samples")
	return table.String()
}
