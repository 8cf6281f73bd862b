package compactapp

import (
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/lambda"
)

// Flags are the compaction stage's command-line flags. Where Mimir has a flag for the same thing, it has Mimir's name.
type Flags struct {
	Concurrency     int                  `name:"compactor.compaction-concurrency" help:"Jobs that run at once."`
	DataDir         string               `name:"compactor.data-dir" placeholder:"DIR" help:"Directory in which blocks are put together before they are uploaded. Default: that of temporary files."`
	Memory          int64                `name:"compactor.memory" type:"bytes" help:"Memory for one job's sources; larger jobs take fewer of them or are split by ranges of series."`
	JobTimeout      time.Duration        `name:"compactor.job-timeout" help:"Longest time that one job may take."`
	MaxSources      int                  `name:"compactor.max-sources" help:"Segments and blocks that one job merges."`
	MaxJobSamples   int64                `name:"compactor.max-job-samples" placeholder:"N" help:"Samples of one job; larger ones are split by ranges of series. Default: half a million for each second of the job timeout."`
	MaxJobsPerTick  int                  `name:"compactor.max-jobs-per-tick" help:"Jobs that a scheduled planner hands to workers at a time, see --compactor.queue-url; several times as many as there are workers."`
	MinPartSegments int                  `name:"compactor.min-part-segments" help:"Segments of a 2h window that still receives data that are worth merging."`
	PartBytes       int64                `name:"compactor.part-bytes" type:"bytes" help:"Size at which fewer segments are worth merging, too."`
	SettleDelay     time.Duration        `name:"compactor.settle-delay" help:"Age at which a segment may be merged; more than --ingest.flush-timeout."`
	WindowDelay     time.Duration        `name:"compactor.window-delay" help:"Wait after the end of a window for late data before it becomes a block."`
	LateDelay       time.Duration        `name:"compactor.late-delay" help:"Wait for more after late data of a window that is a block already."`
	DeletionDelay   time.Duration        `name:"compactor.deletion-delay" help:"Time from the commit that replaced an object to its deletion; more than the longest query."`
	OrphanGrace     time.Duration        `name:"compactor.partial-block-deletion-delay" help:"Age at which what a crashed job left behind is removed."`
	Rollups         bool                 `name:"compactor.rollups" negatable:"" help:"Write exact 5-minute and 1-hour downsamples beside 24h blocks."`
	Retention       flags.Period         `name:"compactor.blocks-retention-period" placeholder:"PERIOD" help:"How long samples are kept, such as 30d. Default: for ever."`
	TenantRetention []flags.TenantPeriod `name:"compactor.tenant-retention" placeholder:"TENANT=PERIOD" help:"A tenant's own retention, such as team-a=30d; 0 is for ever. Repeatable."`
}

// NewFlags returns the flags at their defaults. In a function they are derived from what it was given.
func NewFlags() Flags {
	f := ordinary()
	if lambda.Running() {
		f.DataDir = functionDir
	}
	if m := lambda.MemoryBytes(); m > 0 {
		f.Memory = m / functionShare
	}
	return f
}

const (
	// functionDir is the only directory that a function may write to.
	functionDir = "/tmp"
	// functionShare is the part of a function's memory that a job's sources may have. As much again is garbage that is not yet collected, and the rest is
	// for the block that is being written and the program.
	functionShare = 3
)

func ordinary() Flags {
	s := defaults()
	return Flags{
		Concurrency:     s.Concurrency,
		Memory:          s.MemoryBytes,
		JobTimeout:      s.JobTimeout,
		MaxSources:      s.MaxSources,
		MaxJobsPerTick:  s.MaxJobsPerTick,
		MinPartSegments: s.MinPartSegments,
		PartBytes:       s.PartBytes,
		SettleDelay:     s.SettleDelay,
		WindowDelay:     s.WindowDelay,
		LateDelay:       s.LateDelay,
		DeletionDelay:   s.DeletionDelay,
		OrphanGrace:     s.OrphanGrace,
		Rollups:         !s.WithoutRollups,
	}
}

// defaults are the stage's own.
func defaults() compact.Settings {
	s, err := compact.Settings{}.WithDefaults()
	if err != nil {
		panic(err) // the defaults are constants
	}
	return s
}

// Settings returns what the flags say.
func (f Flags) Settings() compact.Settings {
	s := compact.Settings{
		Concurrency:     f.Concurrency,
		TempDir:         f.DataDir,
		MemoryBytes:     f.Memory,
		JobTimeout:      f.JobTimeout,
		MaxSources:      f.MaxSources,
		MaxJobSamples:   f.MaxJobSamples,
		MaxJobsPerTick:  f.MaxJobsPerTick,
		MinPartSegments: f.MinPartSegments,
		PartBytes:       f.PartBytes,
		SettleDelay:     f.SettleDelay,
		WindowDelay:     f.WindowDelay,
		LateDelay:       f.LateDelay,
		DeletionDelay:   f.DeletionDelay,
		OrphanGrace:     f.OrphanGrace,
		WithoutRollups:  !f.Rollups,
		Retention:       time.Duration(f.Retention),
		TenantRetention: map[string]time.Duration{},
		Interval:        defaults().Interval,
	}
	for _, t := range f.TenantRetention {
		s.TenantRetention[t.Tenant] = time.Duration(t.Period)
	}
	return s
}

// Workers are the flags of a function that plans on a schedule and leaves the jobs to workers.
type Workers struct {
	QueueURL string `name:"compactor.queue-url" placeholder:"URL" help:"FIFO queue that a scheduled plan puts its jobs on, for functions that it triggers. Default: the plan's own function does them."`
}

// Schedule are the flags of a process that compacts by itself.
type Schedule struct {
	Enabled  bool          `name:"compactor.enabled" negatable:"" help:"Compact in the background. Several processes may do so over one store."`
	Interval time.Duration `name:"compactor.compaction-interval" help:"Time from the end of one compaction to the beginning of the next."`
}

// NewSchedule returns the flags at their defaults.
func NewSchedule() Schedule { return Schedule{Enabled: true, Interval: defaults().Interval} }
