// Package compact turns segments into blocks: small segments into parts of their 2h window, a
// closed window into a 2h block, 2h blocks into 12h and 24h blocks. It also applies deletions,
// expires data that is past its retention, and removes garbage.
//
// A sample takes this way after ingest: catalog.Take (a snapshot) → plan.Jobs (pure: jobs as
// values) → Stage.Run (open the sources, merge them series by series, write the block's files,
// commit the manifest) → Stage.Collect. The sources of a merge are live until the commit, which
// replaces them by their block at once. So a reader sees every sample exactly once, whichever
// process dies in between, and every step may run again.
//
// Package live decides which of the samples of one series and time counts: the one of the highest
// rank. The sources of a merge are closed: no other live object that overlaps them in time has a
// rank between theirs. So the block can take the highest rank of its sources without changing an
// answer.
package compact

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/recent"
)

// Stage is the compaction stage of one process. Any number of processes may work on one store at
// once: of two equal jobs, one is dropped. Its methods may be called concurrently.
type Stage struct {
	set   Settings
	store objstore.Store
	log   *slog.Logger
	now   func() time.Time
	met   *metrics
	ids   *idSource

	memory memo
}

// New returns a stage. It starts no goroutine.
func New(set Settings, store objstore.Store, reg prometheus.Registerer, log *slog.Logger, now func() time.Time) (*Stage, error) {
	set, err := set.WithDefaults()
	if err != nil {
		return nil, err
	}
	set.Entropy = cmp.Or(set.Entropy, rand.Reader)
	if set.Encoders == nil {
		set.Encoders = &parquetfile.Encoders{}
	}
	return &Stage{
		set: set, store: store, log: log, now: now, met: newMetrics(reg), ids: &idSource{entropy: set.Entropy},
		memory: memo{seen: map[string]seen{}},
	}, nil
}

// Settings returns the settings of the stage, with defaults.
func (s *Stage) Settings() Settings { return s.set }

// idSource makes identifiers and random numbers.
type idSource struct {
	mu      sync.Mutex
	entropy io.Reader
}

// next returns a ULID of this time.
func (s *idSource) next(now time.Time) (ulid.ULID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(now), s.entropy)
	if err != nil {
		return id, fmt.Errorf("make an identifier: %w", err)
	}
	return id, nil
}

// seed returns a random number.
func (s *idSource) seed() (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b [8]byte
	if _, err := io.ReadFull(s.entropy, b[:]); err != nil {
		return 0, fmt.Errorf("make a seed: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

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
	AnswersAge     time.Duration `name:"compactor.kept-answers-age" default:"168h" above:"0" help:"Age at which kept answers of queries are deleted, also if they are used." when:"Raise it if the answers to long queries cost more than their storage."`
	AnswersBytes   int64         `name:"compactor.kept-answers-bytes" type:"bytes" default:"1GiB" min:"1" help:"Bytes of the kept answers of one tenant's queries. The oldest are deleted beyond." when:"Raise it if answers are evaluated again that were kept before."`
	OrphanGrace    time.Duration `name:"compactor.partial-block-deletion-delay" default:"1h" above:"0" help:"Age at which an orphan, the rest of a job that died, is deleted. Must exceed 15m." when:"Rarely."`

	// OwnTenant has the functions' own metrics, which are written also when nothing else is; "":
	// none. QueuedWrites means that senders write through the queue, so that what else is written,
	// the results of rules, does not arrive from senders. Both are for the time of the last arrival.
	OwnTenant    string `kong:"-"`
	QueuedWrites bool   `kong:"-"`
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
	s.MaxJobSamples = cmp.Or(s.MaxJobSamples, max(1, int64(s.JobTimeout.Seconds()*mergeRate)))
	errs := []error{settings.Check(s)}
	if s.OrphanGrace <= catalog.MaxJobAge {
		errs = append(errs, fmt.Errorf("compactor.partial-block-deletion-delay: want more than %s, for the block of a job under way is no orphan, got %s", catalog.MaxJobAge, s.OrphanGrace))
	}
	return s, errors.Join(errs...)
}
