// Package importapp writes histories from elsewhere into a store: the blocks of a Prometheus, of
// Thanos or of Mimir, and what a server has that answers Prometheus' remote read.
package importapp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// Outcome is what an import did, or what a dry run would do.
type Outcome struct {
	settings Settings
	plan     bulk.Plan
	found    found
	report   bulk.Report
	took     time.Duration
	begun    bool     // a part may be imported
	preview  *preview // of a dry run
}

// Source is where samples are imported from: a TSDB or a Remote.
type Source interface {
	// find looks for what can be imported. dir is for temporary files.
	find(ctx context.Context, dir string) (found, error)
}

// found is what a source has.
type found struct {
	inputs []bulk.Input
	bytes  int64 // of all inputs; 0: not known
	// describe adds what was found to the outcome.
	describe func(*human.Table)
	// series returns about how many series the inputs of a plan have.
	series func(context.Context, *bulk.Plan) (int64, error)
	// left adds what was left out while samples were read.
	left func(*human.Table)
}

// Run imports from a source, and limits the memory of the process. now is the clock that measures
// the duration. The outcome is valid with an error of the import too.
func Run(ctx context.Context, s Settings, src Source, now func() time.Time, progress bulk.Progress) (*Outcome, error) {
	o, set, err := prepare(ctx, s, src)
	if err != nil {
		return nil, err
	}
	s.LimitProcess()
	if s.DryRun && storeurl.Exists(s.Store) != nil { // nothing is there yet
		if o.plan, err = bulk.MakePlan(set, now(), o.found.inputs, bulk.Past{}); err == nil {
			o.preview, err = look(ctx, o)
		}
		return o, err
	}
	if err := storeurl.Reachable(ctx, s.Store); err != nil {
		return nil, err
	}
	store, err := storeurl.Open(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	return o, o.checked(ctx, set, store, now, progress)
}

// Share imports from a source in a process that has other work, into its store. s.MemoryLimit is
// the share of the import; s.Store is not used. The report is valid with an error too.
func Share(ctx context.Context, store objstore.Store, s Settings, src Source, now func() time.Time) (bulk.Report, error) {
	o, set, err := prepare(ctx, s, src)
	if err != nil {
		return bulk.Report{}, err
	}
	err = o.run(ctx, set, store, now, nil)
	return o.report, err
}

// prepare checks the settings and looks for what can be imported.
func prepare(ctx context.Context, s Settings, src Source) (o *Outcome, set bulk.Settings, err error) {
	if set, err = s.Bulk(); err != nil {
		return nil, set, err
	}
	o = &Outcome{settings: s}
	o.found, err = src.find(ctx, s.TempDir)
	return o, set, err
}

// checked is run for a command, which checks the store first unless it is a dry run.
func (o *Outcome) checked(ctx context.Context, set bulk.Settings, store objstore.Store, now func() time.Time, progress bulk.Progress) error {
	if !o.settings.DryRun {
		if err := probe.Check(ctx, store); err != nil {
			return err
		}
	}
	err := o.run(ctx, set, store, now, progress)
	if err != nil && o.begun {
		err = fmt.Errorf("%w\nthe import is not complete: the same command continues it", err)
	}
	return err
}

// run plans the import into a store and does it, unless it is a dry run.
func (o *Outcome) run(ctx context.Context, set bulk.Settings, store objstore.Store, now func() time.Time, progress bulk.Progress) (err error) {
	begin := now()
	if o.plan, err = Plan(ctx, store, o.settings.Tenant, set, o.found.inputs); err != nil {
		return err
	}
	if o.settings.DryRun {
		if o.preview, err = look(ctx, o); err == nil {
			err = o.preview.compare(ctx, store, o.settings.Tenant, &o.plan)
		}
		return err
	}
	o.begun = true
	o.report, err = bulk.Run(ctx, set, store, o.settings.Tenant, o.plan, progress)
	o.took = now().Sub(begin)
	return err
}

// Plan plans an import of inputs, of which earlier imports into the store may have done some.
func Plan(ctx context.Context, store objstore.Store, tenant string, set bulk.Settings, inputs []bulk.Input) (bulk.Plan, error) {
	past, err := bulk.ReadPast(ctx, store, tenant)
	if err != nil {
		return bulk.Plan{}, err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return bulk.Plan{}, err
	}
	return bulk.MakePlan(set, now, inputs, past)
}

// Text describes the outcome.
func (o *Outcome) Text() string {
	table := human.Table{Left: 2}
	o.found.describe(&table)
	if o.plan.Present > 0 {
		table.Row("samples imported before", "about "+human.Count(o.plan.Present))
	}
	if o.plan.Expired > 0 {
		table.Row("samples past the retention", "about "+human.Count(o.plan.Expired))
	}
	if n := o.plan.Lost; n > 0 {
		table.Row("imported blocks in quarantine", human.Count(int64(n))+"; --restore imports their windows again")
	}
	if o.preview != nil {
		o.preview.rows(&table, o)
		return table.String()
	}
	table.Row("blocks written", human.Count(o.report.Blocks))
	table.Some("blocks that were there", o.report.Present)
	table.Row("samples written", human.Count(o.report.Samples))
	table.Some("samples of overlapping blocks left out", o.report.Equal)
	o.found.left(&table)
	table.Row("bytes written", human.Bytes(o.report.Bytes))
	table.Row("time", o.took.Round(time.Millisecond).String())
	table.Row("speed", human.PerSecond(o.report.Samples, o.took)+" samples")
	return table.String()
}

// Settings are those of any import. Names that the compaction stage has, too, mean the same there.
type Settings struct {
	Store  string `name:"store" default:"file://./data" help:"Object store to import into. A missing directory is made."`
	Tenant string `name:"tenant" placeholder:"NAME" help:"Tenant that gets the samples. Default: anonymous."`
	DryRun bool   `name:"dry-run" help:"Only print what would be imported, what it would cost a month, and what the tenant has already."`

	Restore bool `name:"restore" help:"Import again what was imported into windows of which promlake doctor has put a block into quarantine."`

	Level       string `name:"level" default:"12h" enum:"2h,12h,24h" help:"Range of the largest blocks that are written: ${enum}. Compaction makes blocks of 24h of the others; 24h takes eight times as long, because it has rollups and compresses best, and leaves nothing to compaction." when:"Set 24h if nothing compacts the store."`
	Concurrency int    `name:"concurrency" default:"0" min:"0" help:"Blocks that are written at once. 0 is the number of processors." when:"Lower it if the machine has other work."`
	MemoryLimit int64  `name:"memory-limit" type:"bytes" placeholder:"BYTES" default:"0" min:"0" help:"Memory of the process. Windows whose series need more are written in slices. 0 is three quarters of what the cgroup or the machine has." when:"Set it if other processes share the machine."`
	TempDir     string `name:"compactor.data-dir" placeholder:"DIR" help:"Directory for files before their upload, and for blocks that are read from a bucket. Default: the system's temporary directory." when:"Set it if the temporary directory is small or in memory."`
	Rollups     bool   `name:"compactor.rollups" negatable:"" default:"true" help:"Write exact 5-minute and 1-hour downsamples beside blocks of 24h." when:"Turn it off where compaction writes none."`

	WindowDelay     time.Duration            `name:"compactor.window-delay" default:"10m" above:"0" help:"Time after the end of a window at which it becomes one block." when:"Rarely."`
	Retention       time.Duration            `name:"compactor.blocks-retention-period" type:"period" placeholder:"PERIOD" default:"0" min:"0" help:"How long samples are kept, such as 30d: windows that are older are not imported. 0 keeps them forever." when:"Set it as for compaction."`
	TenantRetention map[string]time.Duration `name:"compactor.tenant-retention" type:"period" placeholder:"TENANT=PERIOD" help:"A tenant's own retention, such as team-a=30d. 0 is forever. Repeatable." when:"Set it as for compaction."`
}

// unitSamples bounds the samples of a block: a slow machine writes them in half of the time after
// which a commit is refused.
const unitSamples = 200_000_000

// minMemory is what the writers of blocks need beside the series, in bytes, each.
const minMemory = 64 << 20

// limit returns the memory that the import may use, in bytes: 1 GiB if the machine does not say.
func (s *Settings) limit() int64 { return cmp.Or(s.MemoryLimit, memory.DefaultLimit(), 1<<30) }

// RetentionOf returns how long samples of a tenant are kept; 0: forever.
func (s *Settings) RetentionOf(tenant string) time.Duration {
	if keep, ok := s.TenantRetention[tenant]; ok {
		return keep
	}
	return s.Retention
}

// LimitProcess limits the memory of a process that does nothing but import. GOMEMLIMIT, where it is
// set, stands.
func (s *Settings) LimitProcess() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(s.limit() / 10 * 9)
	}
}

// Bulk returns the settings of the import, whose blocks share the memory limit.
func (s *Settings) Bulk() (out bulk.Settings, err error) {
	if err := settings.Check(*s); err != nil {
		return out, err
	}
	s.Tenant = cmp.Or(s.Tenant, tenant.Default)
	if _, err := tenant.Parse(s.Tenant); err != nil {
		return out, err
	}
	level, err := key.ParseLevel(s.Level)
	if err != nil {
		return out, err
	}
	limit := s.limit()
	n := s.Concurrency
	if n == 0 { // as many as have room
		n = max(1, int(min(int64(runtime.GOMAXPROCS(0)), limit/(2*minMemory))))
	}
	if limit < int64(n)*minMemory {
		return out, fmt.Errorf("import: --memory-limit of %d bytes, want at least %d for each of %d blocks at once: raise it, or lower --concurrency", limit, minMemory, n)
	}
	return bulk.Settings{
		Level: level, MemoryBytes: limit / 3, Concurrency: n, TempDir: s.TempDir, Rollups: s.Rollups, Restore: s.Restore,
		Retention: s.RetentionOf(s.Tenant), WindowDelay: s.WindowDelay, MaxSamples: unitSamples,
	}, nil
}
