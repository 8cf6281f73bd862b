package compact

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/promlake/promlake/internal/catalog"
)

// Settings are the plain data that a compaction stage runs by. The zero value of a field means its default.
type Settings struct {
	// SettleDelay is the age (by its identifier) at which a segment may be merged: by then every older one can be listed. It must be
	// longer than ingest's flush timeout. Default 1 minute.
	SettleDelay time.Duration
	// WindowDelay is how long after its end a range is closed, so that most late data comes in time. Default 10 minutes.
	WindowDelay time.Duration
	// LateDelay is how old the oldest of the segments must be that came after their range was compacted, before they are merged into
	// its block, so that many come together. Default 10 minutes.
	LateDelay time.Duration
	// DeletionDelay is how long superseded objects stay readable. It must be longer than the longest query. Default 15 minutes.
	DeletionDelay time.Duration
	// OrphanGrace is the age at which a block that no manifest names is taken for the leftover of a job that died. It must be longer
	// than catalog.MaxJobAge. Default 1 hour.
	OrphanGrace time.Duration
	// JobTimeout bounds one job, its commit included; at most catalog.MaxJobAge, of which the last half minute is left for cleaning up. Default 15 minutes.
	JobTimeout time.Duration
	// MaxJobsPerTick is the number of jobs that Dispatch hands to workers at a time, which bounds what waits in the queue: a job that waits there for
	// catalog.MaxJobAge is planned again. It should be several times the number of workers. Default 1,000.
	MaxJobsPerTick int
	// Interval is the time between two cycles of a process that compacts by itself. Default 1 minute.
	Interval time.Duration

	// MinPartSegments is the number of segments, or of parts of similar size, that are worth a merge while their window is open. Default 8.
	MinPartSegments int
	// PartBytes is the size of all waiting segments of a window that is worth a merge even if they are fewer. Default 8 MiB.
	PartBytes int64
	// MaxSources is the number of objects that one job merges. Default 64.
	MaxSources int
	// MemoryBytes bounds what one job holds of its sources: decoded segments, the row groups of blocks, series tables. A job takes the
	// oldest of its sources that fit; one whose series tables do not fit is split. Default 256 MiB.
	MemoryBytes int64
	// MaxJobSamples is the number of samples above which a job is split. Default: half a million for each second of JobTimeout, which one core does
	// with room to spare; 450,000,000.
	MaxJobSamples int64
	// Concurrency is the number of jobs that run at once. Default 1.
	Concurrency int
	// WithoutRollups leaves the rollups of 24h blocks out: they cost about a third of the samples' bytes at one sample every 10 seconds.
	WithoutRollups bool

	// Retention is how long samples are kept. 0 keeps them for ever.
	Retention time.Duration
	// TenantRetention overrides Retention for single tenants; 0 keeps for ever.
	TenantRetention map[string]time.Duration

	// TempDir is where the files of a block wait for their upload. Default os.TempDir().
	TempDir string
	// Entropy makes the identifiers of blocks distinct. Default crypto/rand.
	Entropy io.Reader
}

// mergeRate is how many samples a second a job is planned to merge: less than half of what one core does at the slowest level, 24h (docs/compaction.md).
const mergeRate = 500_000

// maxSlices bounds the slices of a split.
const maxSlices = 64

// WithDefaults fills unset fields and reports every setting that makes no sense.
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

// retention returns how long samples of a tenant are kept; 0 is for ever.
func (s *Settings) retention(tenant string) time.Duration {
	if r, ok := s.TenantRetention[tenant]; ok {
		return r
	}
	return s.Retention
}
