package compact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// tenantsAtOnce is the number of tenants that are planned for, or whose garbage is collected, at
// once.
const tenantsAtOnce = 8

// Cycle plans for every tenant, runs the jobs, Concurrency at a time, and collects garbage. A
// failure of one tenant or job is counted and logged, and does not stop the others; the error joins
// all failures.
func (s *Stage) Cycle(ctx context.Context) (Report, error) { return s.cycle(ctx, nil) }

func (s *Stage) cycle(ctx context.Context, progress Progress) (Report, error) {
	return s.tick(ctx, true, func(r *Report, errs *failures) { r.Jobs = s.runAll(ctx, r.Planned, progress, errs) })
}

// fruitless is the number of consecutive cycles without a finished job, because other compactors
// are faster, after which UntilIdle ends.
const fruitless = 3

// UntilIdle runs cycles until a plan is empty or makes no progress. It does not wait for late data
// or for garbage that is not due yet. progress, and ended, which gets the report of each cycle, may
// be nil. The error is that of the last cycle.
func (s *Stage) UntilIdle(ctx context.Context, progress Progress, ended func(*Report)) error {
	for lost := 0; ; {
		r, err := s.cycle(ctx, progress)
		if ended != nil {
			ended(&r)
		}
		switch {
		case len(r.Planned) == 0 || ctx.Err() != nil:
			return err
		case r.Of(Done) > 0:
			lost = 0
		default:
			if lost++; err != nil || lost == fruitless {
				return err
			}
		}
	}
}

// failures collects and logs errors.
type failures struct {
	stage *Stage
	mu    sync.Mutex
	all   []error
}

func (f *failures) add(ctx context.Context, tenant string, err error) {
	if err == nil {
		return
	}
	level := slog.LevelError
	if ctx.Err() != nil { // the cycle was cancelled
		level = slog.LevelInfo
	}
	f.stage.log.Log(ctx, level, "compaction failed", "tenant", tenant, "error", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if tenant == "" {
		f.all = append(f.all, fmt.Errorf("compact: %w", err))
		return
	}
	f.all = append(f.all, fmt.Errorf("compact tenant %s: %w", tenant, err))
}

// join returns all failures, and the reason why the context ended if it did.
func (f *failures) join(ctx context.Context) error {
	if ctx.Err() != nil {
		f.all = append(f.all, context.Cause(ctx))
	}
	return errors.Join(f.all...)
}

// eachTenant calls f for the tenants, several at once, and adds its errors to errs.
func (s *Stage) eachTenant(ctx context.Context, tenants []string, errs *failures, f func(i int, tenant string) error) {
	var g errgroup.Group
	g.SetLimit(tenantsAtOnce)
	for i, t := range tenants {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			errs.add(ctx, t, telemetry.Guard(func() error { return f(i, t) })())
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
}

// runAll runs the jobs in a random order, so that several processes with the same plan mostly run
// different jobs. It begins no job when less than half of the time is left that the first one had.
func (s *Stage) runAll(ctx context.Context, work []Work, progress Progress, errs *failures) []Result {
	seed, err := s.ids.seed()
	if err != nil {
		errs.add(ctx, "", err)
		return nil
	}
	order := slices.Clone(work)
	rand.New(rand.NewPCG(seed, seed)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var mu sync.Mutex
	var results []Result
	full := s.longest(ctx)
	var g errgroup.Group
	g.SetLimit(s.set.Concurrency)
	for _, w := range order {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if s.longest(ctx) < full/2 {
				return nil
			}
			r, err := s.run(ctx, w, progress)
			errs.add(ctx, w.Tenant, err)
			s.ended(ctx, &r)
			if r.Outcome != Failed {
				s.met.queue.Dec()
			}
			mu.Lock()
			defer mu.Unlock()
			results = append(results, r)
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
	return results
}

// ended logs the outcome of a job. failures logs the errors.
func (s *Stage) ended(ctx context.Context, r *Result) {
	switch r.Outcome {
	case Done:
		s.log.InfoContext(ctx, "compacted", "tenant", r.Tenant, "job", r.Job.String(), "read", r.Read, "written", r.Written, "took", r.Took)
	case Conflict:
		s.log.DebugContext(ctx, "another compactor was first", "tenant", r.Tenant, "job", r.Job.String(), "reason", r.Err)
	}
}

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
