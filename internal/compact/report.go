package compact

import (
	"time"

	"github.com/promlake/promlake/internal/compact/plan"
)

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
