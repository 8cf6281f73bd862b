package compact

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/recent"
	"github.com/promlake/promlake/internal/settings"
)

// Settings are the settings of a compaction stage. The tags are those of package
// settings. The zero value of a field means its default. Where Mimir has a flag for the same thing,
// it has Mimir's name.
type Settings struct {
	Concurrency int    `name:"compactor.compaction-concurrency" default:"1" min:"1" help:"Jobs that run at once." when:"Raise it if compaction lags and processors and memory are free."`
	TempDir     string `name:"compactor.data-dir" placeholder:"DIR" help:"Directory for the files of a block before their upload. Default: the system's temporary directory, /tmp in a function." when:"Set it if the temporary directory is small or in memory."`
	MemoryBytes int64  `name:"compactor.memory" type:"bytes" default:"256MiB" min:"1" help:"Memory for the sources of one job. Larger jobs take fewer sources or are split by series." when:"Raise it if jobs are split often. In a function, the default is a third of its memory."`
	// JobTimeout includes the commit. The last half minute of catalog.MaxJobAge is for cleaning up.
	JobTimeout    time.Duration `name:"compactor.job-timeout" default:"15m" above:"0" max:"15m" help:"Longest duration of one job." when:"Lower it where something else ends the process earlier; the AWS stack does."`
	MaxSources    int           `name:"compactor.max-sources" default:"64" min:"2" help:"Blocks that one job merges." when:"Lower it if jobs run out of memory or files."`
	MaxSegments   int           `name:"compactor.max-segments" default:"8192" min:"2" help:"Segments that one job merges, if they fit into its memory; 1024 in a function." when:"Lower it if jobs of many segments take too long."`
	MaxJobSamples int64         `name:"compactor.max-job-samples" placeholder:"N" default:"0" min:"0" help:"Samples above which a job is split by series. 0 is half a million for each second of --compactor.job-timeout." when:"Lower it if jobs end at their timeout."`
	// MaxJobsPerTick bounds the jobs that wait in the queue: one that waits for catalog.MaxJobAge
	// is planned again.
	MaxJobsPerTick  int           `name:"compactor.max-jobs-per-tick" default:"1000" min:"1" help:"Jobs that a scheduled planner puts on --compactor.queue-url at a time." when:"Keep it at several times the number of workers."`
	MinPartSegments int           `name:"compactor.min-part-segments" default:"8" min:"2" help:"Segments of an open 2h window that start a merge." when:"Lower it if queries of recent data read too many segments."`
	PartBytes       int64         `name:"compactor.part-bytes" type:"bytes" default:"8MiB" min:"1" help:"Size of a window's segments that starts a merge of fewer than --compactor.min-part-segments." when:"Rarely."`
	SettleDelay     time.Duration `name:"compactor.settle-delay" default:"1m" above:"0" help:"Age at which a segment may be merged. In a bucket, it must exceed --ingest.flush-timeout of every writer." when:"Only together with --ingest.settle-delay."`
	WindowDelay     time.Duration `name:"compactor.window-delay" default:"10m" above:"0" help:"Time after the end of a window at which it becomes a block." when:"Raise it if much data arrives late."`
	LateDelay       time.Duration `name:"compactor.late-delay" default:"10m" above:"0" help:"Age of the oldest late segment at which late segments are merged into their block." when:"Raise it if late data makes blocks be rewritten too often."`
	DeletionDelay   time.Duration `name:"compactor.deletion-delay" default:"15m" above:"0" help:"Time from the replacement of an object to its deletion. Must exceed --query.timeout of every reader." when:"Raise it before you raise --query.timeout."`
	OrphanGrace     time.Duration `name:"compactor.partial-block-deletion-delay" default:"1h" above:"0" help:"Age at which an orphan, the rest of a job that died, is deleted. Must exceed 15m." when:"Rarely."`

	Retention       time.Duration            `name:"compactor.blocks-retention-period" type:"period" placeholder:"PERIOD" default:"0" min:"0" help:"How long samples are kept, such as 30d. 0 keeps them forever." when:"Set it to bound the cost of storage."`
	TenantRetention map[string]time.Duration `name:"compactor.tenant-retention" type:"period" placeholder:"TENANT=PERIOD" help:"A tenant's own retention, such as team-a=30d. 0 is forever. Repeatable." when:"Set it for tenants whose data is worth more or less than that of others."`

	// WithoutRollups omits the rollups of 24h blocks. They have about a third of the samples' bytes
	// at one sample every 10 seconds.
	WithoutRollups bool `kong:"-"`
	// Entropy makes the identifiers of blocks distinct. Default crypto/rand.
	Entropy io.Reader `kong:"-"`
	// Recent has segments that this process has stored, which merges take from memory. nil: none.
	Recent *recent.Segments `kong:"-"`
	// Encoders keeps compressors from one job to the next. Default: those of the stage.
	Encoders *parquetfile.Encoders `kong:"-"`
}

// mergeRate is how many samples a second a job is expected to merge: less than half of what one
// core merges at the slowest level, 24h (docs/compaction.md).
const mergeRate = 500_000

// maxSlices bounds the slices of a split.
const maxSlices = 64

// WithDefaults fills unset fields and reports every invalid setting, by the name of its flag.
func (s Settings) WithDefaults() (Settings, error) {
	s.fill()
	errs := []error{settings.Check(s)}
	if s.OrphanGrace <= catalog.MaxJobAge {
		errs = append(errs, fmt.Errorf("compactor.partial-block-deletion-delay: want more than %s, for the block of a job under way is no orphan, got %s", catalog.MaxJobAge, s.OrphanGrace))
	}
	return s, errors.Join(errs...)
}

func (s *Settings) fill() {
	settings.Fill(s)
	if s.MaxJobSamples == 0 {
		s.MaxJobSamples = max(1, int64(s.JobTimeout.Seconds()*mergeRate))
	}
}
