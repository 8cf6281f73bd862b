package compact

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// A job that would exceed its time, however often it is tried, must become smaller. The estimate is
// Settings.MaxJobSamples: a larger job is planned as a split. Where the estimate is wrong (a slow
// machine, a slow store), the job records a split when its time is over. Each slice of that split
// takes half of the time at the same pace. A slice that is too slow replaces its split by one of
// twice as many. longest keeps a tenth of the time, at most cleanupTimeout, for the recording.

// errSlow reports that a job's own time is over, as opposed to that of its process.
var errSlow = errors.New("out of time")

// longest returns the time that a job which begins now may take: the job timeout or, if that is
// less, the time until the context's deadline or until its commit would be refused.
func (s *Stage) longest(ctx context.Context) time.Duration {
	most := min(s.set.JobTimeout, catalog.MaxJobAge-cleanupTimeout)
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		return min(most, left-min(cleanupTimeout, left/10))
	}
	return most
}

// divisible reports whether the job can be split, or is a slice that can be smaller, and knows its
// sources already. Parts are never split.
func divisible(r *Result) bool {
	return !r.begun.IsZero() && (r.Job.Kind == plan.Merge && r.Job.Level != key.Part || r.Job.Kind == plan.Cut && r.Job.Slice.Of < plan.MaxSlices)
}

// slicesAt returns the number of slices for a job that ran out of time after read of its total
// samples: each slice gets half of that time, at the same pace.
func slicesAt(read, total int64) int {
	n := 2
	for n < plan.MaxSlices && read > 0 && int64(n)*read < 2*total {
		n *= 2
	}
	return n
}

// splitSlow records a split of a job whose time was over; of a slice, it splits the whole split
// into twice as many.
func (s *Stage) splitSlow(ctx context.Context, r *Result) error {
	n := slicesAt(r.Read, r.total)
	if r.Job.Kind == plan.Cut {
		n = 2 * r.Job.Slice.Of
	}
	s.log.WarnContext(ctx, "a job takes too long and is split", "tenant", r.Tenant, "job", r.Job.String(), "samples_read", r.Read, "samples", r.total, "slices", n)
	slow, old := r.Job.Kind, r.Job.Split
	r.Job.Kind, r.Job.Slice, r.Job.Split = plan.Split, catalog.Slice{Of: n}, ulid.ULID{}
	if slow == plan.Cut {
		id, err := s.ids.next(r.begun)
		if err != nil {
			return err
		}
		by := catalog.Split{ID: id, Level: r.Job.Level, Window: r.Job.Window, Of: r.Job.Slice.Of}
		return s.commit(ctx, r.Tenant, catalog.Version{}, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
			return m.Resplit(now, old, by)
		})
	}
	return s.split(ctx, r, r.begun)
}
