package compact

import (
	"time"

	"github.com/promlake/promlake/internal/compact/plan"
)

// Outcome is how a job ended.
type Outcome string

// The outcomes of jobs.
const (
	Done     Outcome = "done"
	Conflict Outcome = "conflict" // another job was first: the work was dropped, nothing is wrong
	Failed   Outcome = "failed"
)

// Result describes what a job did.
type Result struct {
	Tenant  string
	Job     plan.Job // as done: it may have fewer sources than planned, and may have become a Split
	Outcome Outcome
	Err     error // of Conflict and Failed

	Read         int64 // samples of the sources
	Written      int64 // samples of the block
	Deleted      int64 // samples that tombstones covered
	BytesRead    int64
	BytesWritten int64
	Took         time.Duration

	total int64     // samples of the sources, about
	begun time.Time // when the job's first manifest was read; zero if it was not
}

// Progress is called while a job runs, with the number of samples read so far and about how many
// there are. It is called from several goroutines at once.
type Progress func(tenant string, job plan.Job, done, total int64)

// Report is what a cycle or a tick found and did.
type Report struct {
	State   plan.State // before the jobs
	Planned []Work     // in the order of tenants and plans
	Checked int        // tenants that a tick planned for; it skipped those that were idle shortly before
	Sent    int        // jobs that a tick has handed to workers
	Jobs    []Result   // in the order in which they ended; fewer than planned if the context ended
	Garbage Garbage
	Took    time.Duration
}

// Of returns the number of jobs with this outcome.
func (r *Report) Of(o Outcome) (n int) {
	for i := range r.Jobs {
		if r.Jobs[i].Outcome == o {
			n++
		}
	}
	return n
}
