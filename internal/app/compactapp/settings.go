package compactapp

import (
	"sync"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/store/recent"
)

// Settings are those of the compaction stage.
type Settings struct {
	compact.Settings
	Rollups bool `name:"compactor.rollups" negatable:"" default:"true" help:"Write exact 5-minute and 1-hour downsamples beside 24h blocks." when:"Turn it off to save about a third of the storage, if nobody queries long ranges."`
}

// DefaultSettings returns the defaults. In a function they are derived from its memory and its
// disk.
func DefaultSettings() Settings {
	s := settings.Default[Settings]()
	if lambda.Running() {
		s.TempDir, s.MaxSegments = functionDir, functionSegments
	}
	if m := lambda.MemoryBytes(); m > 0 {
		s.MemoryBytes = m / functionShare
	}
	return s
}

const (
	// functionDir is the only directory that a function may write to.
	functionDir = "/tmp"
	// functionSegments are so few that a job of them fits into a message of the queue.
	functionSegments = 1024
	// functionShare is the part of a function's memory that a job's sources may have. As much again
	// is garbage that is not yet collected, and the rest is for the block that is being written and
	// the program.
	functionShare = 3
)

// Stage returns the settings as the stage takes them.
func (s Settings) Stage() compact.Settings {
	s.WithoutRollups = !s.Rollups
	return s.Settings
}

// Workers are the settings of a function that plans on a schedule and leaves the jobs to workers.
type Workers struct {
	Queued   bool   `name:"compactor.queued-writes" negatable:"" default:"false" help:"Senders write through a queue, so what else is written, such as results of rules, does not count in silent_seconds of the log." when:"The AWS stack sets it in mode buffered."`
	QueueURL string `name:"compactor.queue-url" placeholder:"URL" help:"URL of the FIFO queue on which a scheduled planner puts its jobs, for functions that the queue invokes. Default: the planner runs the jobs." when:"The AWS stack sets it."`
}

// Schedule are the settings of a process that compacts by itself.
type Schedule struct {
	Enabled  bool          `name:"compactor.enabled" basic:"" negatable:"" default:"true" help:"Compact in the background. Several processes may compact one store." when:"Turn it off where another process compacts."`
	Interval time.Duration `name:"compactor.compaction-interval" default:"1m" above:"0" help:"Time from the end of one compaction to the start of the next." when:"Raise it to pay for fewer LIST requests."`
	Head     int64         `name:"query.head-bytes" type:"bytes" default:"256MiB" min:"0" help:"Memory for the samples of the last 12 minutes, by series, of tenants whose recent samples are read often, as rules do. A series takes about 130 bytes. A tenant whose samples need more has none in memory for an hour. 0 keeps none." when:"Raise it if promlake_head_limit_reached is 1. If not set, at most a 16th of --memory-limit."`
	Recent   int64         `name:"compactor.recent-bytes" type:"bytes" default:"32MiB" min:"0" help:"Memory for samples that this process has stored and not yet merged, at 14 bytes a sample, so that it does not read them again to merge or to query them. Their footers take up to a third of it beyond that. 0 keeps none." when:"Raise it if promlake_compact_merged_segments_total counts reads and this process alone writes more than 17000 samples a second. If not set, 128MiB with --config.file, and at most a 64th of --memory-limit."`
}

// recentShare is the part of the process's memory that recent segments may have unless the operator
// gave a number.
const recentShare = 64

// headShare is likewise the part that the last samples by series may have.
const headShare = 16

// Settings of a process that scrapes, unless the operator gave them. A merge costs a microsecond
// for each series, so it waits for some minutes of samples. Its load is steady: without room for
// all that waits to be merged, each merge reads and decodes.
const (
	segmentsOfScrapes = 60
	bytesOfScrapes    = 64 << 20
	recentOfScrapes   = 128 << 20
)

// soon is the longest time from a segment's write to the first plan that merges it for which heads
// keep segments that wait.
const soon = 3 * time.Minute

// Kept returns a function that returns what the ingest stage and the compaction stage of a process
// share: nil if there is no compaction, or no memory for it. settle is the age at which segments
// may be merged.
func (s Schedule) Kept(scrapes bool, settle time.Duration) func(process.Parts) *recent.Segments {
	var once sync.Once
	var kept *recent.Segments
	return func(p process.Parts) *recent.Segments {
		once.Do(func() {
			limit := s.Recent
			if scrapes {
				flags.Replace(p.Flags, "compactor.recent-bytes", &limit, recentOfScrapes)
			}
			if all := p.Memory.Limit(); all > 0 {
				flags.Lower(p.Flags, "compactor.recent-bytes", &limit, all/recentShare)
			}
			if s.Enabled && limit > 0 {
				kept = recent.New(limit, p.Registry, p.Now)
				heads := s.Head
				if all := p.Memory.Limit(); all > 0 {
					flags.Lower(p.Flags, "query.head-bytes", &heads, all/headShare)
				}
				if heads > 0 {
					kept.KeepHeads(heads, scrapes && s.Interval+settle <= soon, p.Registry)
				}
			}
		})
		return kept
	}
}
