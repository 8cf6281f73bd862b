package compact

import (
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/catalog"
)

// Outcome is how a job ended.
type Outcome string

// The outcomes of jobs.
const (
	Done     Outcome = "done"
	Conflict Outcome = "conflict" // another job was first: the work was dropped, nothing is wrong
	Failed   Outcome = "failed"
)

// Result says what a job did.
type Result struct {
	Tenant  string
	Job     Job // as it was done: its sources may be fewer than planned, its kind may have become Split
	Outcome Outcome
	Err     error // of Conflict and Failed

	Block        *catalog.Block // written and committed; nil if nothing was left to write
	Read         int64          // samples of the sources
	Written      int64          // samples of the block
	Deleted      int64          // samples that tombstones covered
	BytesRead    int64
	BytesWritten int64
	Took         time.Duration

	total int64     // samples of the sources, about
	begun time.Time // when the manifest was read that the job began with; zero if it did not get so far
}

// String says what the job did, in one line.
func (r Result) String() string {
	switch {
	case r.Outcome != Done:
		return fmt.Sprintf("%s: %s: %s: %v", r.Tenant, r.Job, r.Outcome, r.Err)
	case r.Block == nil:
		return fmt.Sprintf("%s: %s: done in %s", r.Tenant, r.Job, r.Took.Round(time.Millisecond))
	default:
		return fmt.Sprintf("%s: %s: %d of %d samples, %d bytes, in %s", r.Tenant, r.Job, r.Written, r.Read, r.BytesWritten, r.Took.Round(time.Millisecond))
	}
}

// Progress hears of a job while it runs: samples read so far, of about total. It is called from several goroutines at once.
type Progress func(tenant string, job Job, done, total int64)
