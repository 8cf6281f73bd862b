package compact

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/promlake/promlake/internal/catalog"
)

// Settings are the settings of a compaction stage. The zero value of a field means its default.
type Settings struct {
	// SettleDelay is the age, by its rank, at which a segment may be merged: by then the listing
	// has every older one. It must be longer than ingest's flush timeout. Default 1 minute.
	SettleDelay time.Duration
	// WindowDelay is how long after its end a window is closed, so that most late data arrives
	// before. Default 10 minutes.
	WindowDelay time.Duration
	// LateDelay is the age of the oldest late segment at which the late segments of a compacted
	// window are merged into its block, so that many are merged together. Default 10 minutes.
	LateDelay time.Duration
	// DeletionDelay is how long superseded objects stay readable. It must be longer than the
	// longest query. Default 15 minutes.
	DeletionDelay time.Duration
	// OrphanGrace is the age at which a block that no manifest names counts as an orphan of a job
	// that died. It must be longer than catalog.MaxJobAge. Default 1 hour.
	OrphanGrace time.Duration
	// JobTimeout bounds one job with its commit. It is at most catalog.MaxJobAge less half a minute
	// for cleaning up. Default 15 minutes.
	JobTimeout time.Duration
	// MaxJobsPerTick is the number of jobs that one Dispatch sends to workers. It bounds the jobs
	// that wait in the queue: one that waits for catalog.MaxJobAge is planned again. It should be
	// several times the number of workers. Default 1,000.
	MaxJobsPerTick int
	// Interval is the time between two cycles of a process that compacts by itself. Default 1
	// minute.
	Interval time.Duration

	// MinPartSegments is the least number of segments, or of parts of similar size, that are merged
	// while their window is open. Default 8.
	MinPartSegments int
	// PartBytes is the size of all waiting segments of a window at which they are merged even if
	// they are fewer. Default 8 MiB.
	PartBytes int64
	// MaxSources is the number of objects that one job merges. Default 64.
	MaxSources int
	// MemoryBytes bounds the memory of one job for its sources: decoded segments, row groups of
	// blocks, series tables. A job takes the oldest sources that fit; a job whose series tables do
	// not fit is split. Default 256 MiB.
	MemoryBytes int64
	// MaxJobSamples is the number of samples above which a job is split. Default: half a million
	// for each second of JobTimeout, which is 450,000,000; one core merges more.
	MaxJobSamples int64
	// Concurrency is the number of jobs that run at once. Default 1.
	Concurrency int
	// WithoutRollups omits the rollups of 24h blocks. They have about a third of the samples' bytes
	// at one sample every 10 seconds.
	WithoutRollups bool

	// Retention is how long samples are kept. 0 keeps them forever.
	Retention time.Duration
	// TenantRetention overrides Retention by tenant; 0 keeps forever.
	TenantRetention map[string]time.Duration

	// TempDir is the directory of a block's files before their upload. Default os.TempDir().
	TempDir string
	// Entropy makes the identifiers of blocks distinct. Default crypto/rand.
	Entropy io.Reader
}

// mergeRate is how many samples a second a job is expected to merge: less than half of what one
// core merges at the slowest level, 24h (docs/compaction.md).
const mergeRate = 500_000

// maxSlices bounds the slices of a split.
const maxSlices = 64

// WithDefaults fills unset fields and reports every invalid setting.
func (s Settings) WithDefaults() (Settings, error) {
	s.fill()
	return s, s.validate()
}

func (s *Settings) fill() {
	setDefault(&s.SettleDelay, time.Minute)
	setDefault(&s.WindowDelay, 10*time.Minute)
	setDefault(&s.LateDelay, 10*time.Minute)
	setDefault(&s.DeletionDelay, 15*time.Minute)
	setDefault(&s.OrphanGrace, time.Hour)
	setDefault(&s.JobTimeout, 15*time.Minute)
	setDefault(&s.Interval, time.Minute)
	setDefault(&s.MinPartSegments, 8)
	setDefault(&s.PartBytes, 8<<20)
	setDefault(&s.MaxSources, 64)
	setDefault(&s.MemoryBytes, 256<<20)
	setDefault(&s.MaxJobSamples, max(1, int64(s.JobTimeout.Seconds()*mergeRate)))
	setDefault(&s.MaxJobsPerTick, 1000)
	setDefault(&s.Concurrency, 1)
}

func setDefault[T ~int | ~int64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

func (s *Settings) validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"settle delay", s.SettleDelay}, {"window delay", s.WindowDelay}, {"late delay", s.LateDelay}, {"deletion delay", s.DeletionDelay},
		{"orphan grace", s.OrphanGrace}, {"job timeout", s.JobTimeout}, {"interval", s.Interval},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("compact settings: %s must be positive, is %s", d.name, d.value))
		}
	}
	for _, n := range []struct {
		name         string
		value, least int64
	}{
		{"min part segments", int64(s.MinPartSegments), 2}, {"part bytes", s.PartBytes, 1}, {"max sources", int64(s.MaxSources), 2},
		{"memory bytes", s.MemoryBytes, 1}, {"max job samples", s.MaxJobSamples, 1}, {"concurrency", int64(s.Concurrency), 1},
		{"max jobs per tick", int64(s.MaxJobsPerTick), 1},
	} {
		if n.value < n.least {
			errs = append(errs, fmt.Errorf("compact settings: %s must be at least %d, is %d", n.name, n.least, n.value))
		}
	}
	if s.OrphanGrace <= catalog.MaxJobAge {
		errs = append(errs, fmt.Errorf("compact settings: orphan grace (%s) must be longer than %s: the block of a job under way is no orphan", s.OrphanGrace, catalog.MaxJobAge))
	}
	if s.JobTimeout > catalog.MaxJobAge {
		errs = append(errs, fmt.Errorf("compact settings: job timeout (%s) must be at most %s: no job may commit later", s.JobTimeout, catalog.MaxJobAge))
	}
	if s.Retention < 0 {
		errs = append(errs, fmt.Errorf("compact settings: retention must not be negative, is %s", s.Retention))
	}
	for t, r := range s.TenantRetention {
		if r < 0 {
			errs = append(errs, fmt.Errorf("compact settings: retention of tenant %s must not be negative, is %s", t, r))
		}
	}
	return errors.Join(errs...)
}

// retention returns how long samples of a tenant are kept; 0 is forever.
func (s *Settings) retention(tenant string) time.Duration {
	if r, ok := s.TenantRetention[tenant]; ok {
		return r
	}
	return s.Retention
}
