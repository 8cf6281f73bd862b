package plan

import "time"

// Policy bounds what one job takes, and says how long objects wait for theirs. The tags are those
// of package settings. Plans take every field as it is: the stage fills those that are zero.
type Policy struct {
	MemoryBytes     int64 `name:"compactor.memory" type:"bytes" default:"256MiB" min:"1" help:"Memory for the sources of one job. Larger jobs take fewer sources or are split by series." when:"Raise it if jobs are split often. In a function, the default is a third of its memory."`
	MaxSources      int   `name:"compactor.max-sources" default:"64" min:"2" help:"Blocks that one job merges." when:"Lower it if jobs run out of memory or files."`
	MaxSegments     int   `name:"compactor.max-segments" default:"8192" min:"2" help:"Segments that one job merges, if they fit into its memory; 1024 in a function." when:"Lower it if jobs of many segments take too long."`
	MaxJobSamples   int64 `name:"compactor.max-job-samples" placeholder:"N" default:"0" min:"0" help:"Samples above which a job is split by series. 0 is half a million for each second of --compactor.job-timeout." when:"Lower it if jobs end at their timeout."`
	MinPartSegments int   `name:"compactor.min-part-segments" default:"8" min:"2" help:"Segments of an open 2h window that start a merge." when:"Lower it if queries of recent data read too many segments. If not set, 60 in a process with --config.file that compacts; with rules, segments wait there until the oldest is five minutes old, or until they are 512."`
	PartBytes       int64 `name:"compactor.part-bytes" type:"bytes" default:"8MiB" min:"1" help:"Size of a window's segments that starts a merge of fewer than --compactor.min-part-segments." when:"Rarely. If not set, 64MiB in a process with --config.file that compacts."`
	// PartAge, if not 0, starts a merge of the segments of an open window when the oldest is so old,
	// instead of MinPartSegments, for a tenant whose segments take little memory while they wait.
	PartAge time.Duration `kong:"-"`
	// PartFrom is since when such segments were written: if the oldest is from before, the segments are
	// also merged as soon as they are MinPartSegments or have PartBytes.
	PartFrom    time.Time     `kong:"-"`
	SettleDelay time.Duration `name:"compactor.settle-delay" default:"1m" above:"0" help:"Age at which a segment may be merged. In a bucket, it must exceed --ingest.flush-timeout of every writer." when:"Only together with --ingest.settle-delay."`
	WindowDelay time.Duration `name:"compactor.window-delay" default:"10m" above:"0" help:"Time after the end of a window at which it becomes a block." when:"Raise it if much data arrives late."`
	LateDelay   time.Duration `name:"compactor.late-delay" default:"10m" above:"0" help:"Age of the oldest late segment at which late segments are merged into their block." when:"Raise it if late data makes blocks be rewritten too often."`

	Retention       time.Duration            `name:"compactor.blocks-retention-period" basic:"" type:"period" placeholder:"PERIOD" default:"0" min:"0" help:"How long samples are kept, such as 30d. 0 keeps them forever." when:"Set it to bound the cost of storage."`
	TenantRetention map[string]time.Duration `name:"compactor.tenant-retention" basic:"" type:"period" placeholder:"TENANT=PERIOD" help:"A tenant's own retention, such as team-a=30d. 0 is forever. Repeatable." when:"Set it for tenants whose data is worth more or less than that of others."`
}
