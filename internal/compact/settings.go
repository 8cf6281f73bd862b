package compact

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/recent"
)

// Settings are the settings of a compaction stage. The tags are those of package
// settings. The zero value of a field means its default. Where Mimir has a flag for the same thing,
// it has Mimir's name.
type Settings struct {
	plan.Policy

	Concurrency int    `name:"compactor.compaction-concurrency" default:"1" min:"1" help:"Jobs that run at once." when:"Raise it if compaction lags and processors and memory are free."`
	TempDir     string `name:"compactor.data-dir" placeholder:"DIR" help:"Directory for the files of a block before their upload. Default: the system's temporary directory, /tmp in a function." when:"Set it if the temporary directory is small or in memory."`
	// JobTimeout includes the commit. The last half minute of catalog.MaxJobAge is for cleaning up.
	JobTimeout time.Duration `name:"compactor.job-timeout" default:"15m" above:"0" max:"15m" help:"Longest duration of one job." when:"Lower it where something else ends the process earlier; the AWS stack does."`
	// MaxJobsPerTick bounds the jobs that wait in the queue: one that waits for catalog.MaxJobAge
	// is planned again.
	MaxJobsPerTick int           `name:"compactor.max-jobs-per-tick" default:"1000" min:"1" help:"Jobs that a scheduled planner puts on --compactor.queue-url at a time." when:"Keep it at several times the number of workers."`
	DeletionDelay  time.Duration `name:"compactor.deletion-delay" default:"15m" above:"0" help:"Time from the replacement of an object to its deletion. Must exceed --query.timeout of every reader." when:"Raise it before you raise --query.timeout."`
	OrphanGrace    time.Duration `name:"compactor.partial-block-deletion-delay" default:"1h" above:"0" help:"Age at which an orphan, the rest of a job that died, is deleted. Must exceed 15m." when:"Rarely."`

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

// WithDefaults fills unset fields and reports every invalid setting, by the name of its flag.
func (s Settings) WithDefaults() (Settings, error) {
	settings.Fill(&s)
	if s.MaxJobSamples == 0 {
		s.MaxJobSamples = max(1, int64(s.JobTimeout.Seconds()*mergeRate))
	}
	errs := []error{settings.Check(s)}
	if s.OrphanGrace <= catalog.MaxJobAge {
		errs = append(errs, fmt.Errorf("compactor.partial-block-deletion-delay: want more than %s, for the block of a job under way is no orphan, got %s", catalog.MaxJobAge, s.OrphanGrace))
	}
	return s, errors.Join(errs...)
}
