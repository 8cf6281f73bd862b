package compact

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

// A job that would take longer than it may, however often it is tried, must become smaller. The estimate is Settings.MaxJobSamples: what
// is larger is planned as a split. Where it is wrong (a slow machine, a slow store), the job itself notices that its time is over, and
// records a split into so many slices that each takes half of that time at the pace that it had; a slice replaces its split by one of twice as
// many. The time that this needs is left over by reserve.

// errSlow marks the end of a job's own time, as opposed to that of its process.
var errSlow = errors.New("out of time")

// longest is the time that a job may take which begins now: the job timeout or, if that is less, what is left until the context's deadline or until
// its commit would be refused.
func (s *Stage) longest(ctx context.Context) time.Duration {
	most := min(s.set.JobTimeout, catalog.MaxJobAge-cleanupTimeout)
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		return min(most, left-reserve(left))
	}
	return most
}

// reserve is how much of the time left is kept for what follows the work.
func reserve(left time.Duration) time.Duration { return min(cleanupTimeout, left/10) }

// divisible says whether the job is one that can be split, or a slice that can be smaller, and has got so far as to know its sources. Parts are never
// split.
func divisible(r *Result) bool {
	if r.begun.IsZero() {
		return false
	}
	return r.Job.Kind == Merge && r.Job.Level != key.Part || r.Job.Kind == Cut && r.Job.Slice.Of < maxSlices
}

// slicesAt returns how many slices a job needs that was out of time after so many of its samples: each has half of that time, at the same pace.
func slicesAt(read, total int64) int {
	n := 2
	for n < maxSlices && read > 0 && int64(n)*read < 2*total {
		n *= 2
	}
	return n
}

// splitSlow records a split of a job that was out of time; if it is a slice, of all of its split into twice as many.
func (s *Stage) splitSlow(ctx context.Context, r *Result) error {
	n := slicesAt(r.Read, r.total)
	if r.Job.Kind == Cut {
		n = 2 * r.Job.Slice.Of
	}
	s.log.WarnContext(ctx, "a job takes too long and is split", "tenant", r.Tenant, "job", r.Job.String(), "samples_read", r.Read, "samples", r.total, "slices", n)
	slow, old := r.Job.Kind, r.Job.Split
	r.Job.Kind, r.Job.Slice, r.Job.Split = Split, catalog.Slice{Of: n}, ulid.ULID{}
	if slow == Cut {
		return s.resplit(ctx, r, old)
	}
	return s.split(ctx, r, r.begun)
}

// resplit records a split in place of one whose slices are too large.
func (s *Stage) resplit(ctx context.Context, r *Result, old ulid.ULID) error {
	id, err := s.ids.next(r.begun)
	if err != nil {
		return err
	}
	by := catalog.Split{ID: id, Level: r.Job.Level, Window: r.Job.Window, Of: r.Job.Slice.Of}
	return s.commit(ctx, r.Tenant, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		return m.Resplit(now, old, by)
	})
}
