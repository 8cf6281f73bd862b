package compact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/recent"
)

// cleanupTimeout bounds the removal of what a job without a commit has written.
const cleanupTimeout = 30 * time.Second

// Run runs one job of a plan. It may be called for any job at any time: a job whose sources have
// changed, or that was planned more than catalog.MaxJobAge ago, is a Conflict, which is no error. A
// job that takes too long is recorded as a split (splitSlow). The result is valid with an error
// too.
func (s *Stage) Run(ctx context.Context, tenant string, job plan.Job) (Result, error) {
	return s.run(ctx, Work{Tenant: tenant, Job: job}, nil)
}

func (s *Stage) run(ctx context.Context, w Work, progress Progress) (Result, error) {
	limit := s.longest(ctx)
	within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("job takes longer than %s (job timeout, or what is left of the invocation): %w", limit, errSlow))
	defer cancel()
	begin := s.now()
	r := Result{Tenant: w.Tenant, Job: w.Job, Outcome: Done}
	err := telemetry.Guard(func() error { return s.do(within, &r, progress) })()
	if err != nil && within.Err() != nil {
		err = errors.Join(err, context.Cause(within))
	}
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(within), errSlow) && divisible(&r) {
		err = s.splitSlow(ctx, &r)
	}
	r.Took = s.now().Sub(begin)
	switch {
	case errors.Is(err, catalog.ErrConflict):
		r.Outcome, r.Err, err = Conflict, err, nil
	case err != nil:
		err = fmt.Errorf("%s: %w", w.Job, err)
		r.Outcome, r.Err = Failed, err
	}
	s.met.ran(&r)
	return r, err
}

func (s *Stage) do(ctx context.Context, r *Result, progress Progress) error {
	switch job := &r.Job; job.Kind {
	case plan.Expire:
		return s.upkeep(ctx, r, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
			return m.Expire(now, job.Sources)
		})
	case plan.Drop:
		return s.upkeep(ctx, r, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
			return m.DropTombstones(now, job.Drop)
		})
	case plan.Split:
		return s.split(ctx, r, job.Planned)
	default:
		err := s.merge(ctx, r, progress)
		if errors.Is(err, recent.ErrGone) { // it is still in the store
			err = s.merge(ctx, r, progress)
		}
		return err
	}
}

// upkeep commits a change of the manifest that needs no work.
func (s *Stage) upkeep(ctx context.Context, r *Result, change catalog.Change) error {
	return s.commit(ctx, r.Tenant, catalog.Version{}, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		if err := r.Job.Young(plan.Later(now, m.Time())); err != nil {
			return m, err
		}
		return change(m, now)
	})
}

// commit changes the manifest. Nothing else in this stage does. known is a version that was read
// before, or none.
func (s *Stage) commit(ctx context.Context, tenant string, known catalog.Version, change catalog.Change) error {
	_, err := catalog.CommitAfter(ctx, s.store, tenant, known, change)
	return err
}

// split records that a job is to be done in slices. The split's identifier has the time at which
// its sources were known to be live. A commit refuses a split that is so old that its sources may
// have been replaced, deleted and forgotten.
func (s *Stage) split(ctx context.Context, r *Result, known time.Time) error {
	id, err := s.ids.next(known)
	if err != nil {
		return err
	}
	job := &r.Job
	sp := catalog.Split{ID: id, Level: job.Level, Window: job.Window, Of: job.Slice.Of, Sources: job.Sources}
	return s.commit(ctx, r.Tenant, catalog.Version{}, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		return m.BeginSplit(now, sp)
	})
}

// begin takes a snapshot of the job's window, and returns the time at which the job begins, by the
// store's clock. A job that comes too late costs one read of the manifest. known is the manifest of
// the snapshot: the job decodes a manifest only if it has changed since it last read it.
func (s *Stage) begin(ctx context.Context, tenant string, job *plan.Job) (snap catalog.Snapshot, known catalog.Version, now time.Time, err error) {
	if known, err = catalog.Refresh(ctx, s.store, tenant, catalog.Version{}); err != nil {
		return snap, known, now, err
	}
	if err := plan.Check(&known.Manifest, job); err != nil {
		return snap, known, now, err
	}
	// Before the manifest is read again, because the commit checks the age of that read.
	if now, err = s.store.Now(ctx); err != nil {
		return snap, known, now, err
	}
	if err := job.Young(plan.Later(now, known.Time())); err != nil {
		return snap, known, now, err
	}
	from := int64(job.Window)
	l, err := catalog.ListLive(ctx, s.store, tenant, from, from+job.Level.Millis()-1, known.Manifest)
	if err != nil {
		return snap, known, now, err
	}
	before := known.Generation
	// After the listing, as catalog.Take does.
	if known, err = catalog.Refresh(ctx, s.store, tenant, known); err != nil {
		return snap, known, now, err
	}
	if known.Generation < before {
		return snap, known, now, fmt.Errorf("the manifest went back from generation %d to %d: %w", before, known.Generation, catalog.ErrConflict)
	}
	return l.With(known.Manifest), known, plan.Later(now, known.Time()), nil
}

// explain turns the absence of a source's object into a conflict if the manifest has changed
// meanwhile. Otherwise data is missing.
func (s *Stage) explain(ctx context.Context, tenant string, job *plan.Job, err error) error {
	if !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	m, _, merr := catalog.ReadManifest(ctx, s.store, tenant)
	if merr != nil {
		return errors.Join(err, merr)
	}
	if cerr := plan.Check(&m, job); cerr != nil {
		return cerr
	}
	return fmt.Errorf("a live object is missing: %w", err)
}

// Work runs the job of a message. The message is done unless there is an error: bytes that are no
// job message (ErrNoJob), or a context that was cancelled before its deadline.
//
// A job that failed is no error. It is logged and counted, and a later plan has it again as soon as
// the queue accepts the same message again. Redelivery of the old message would block its group
// until then, and with it all other jobs of the day, which meanwhile become too old.
func (s *Stage) Work(ctx context.Context, body []byte) (Result, error) {
	w, err := Decode(body)
	if err != nil {
		s.log.ErrorContext(ctx, "a message is no job", "error", err)
		return Result{}, err
	}
	r, err := s.run(ctx, w, nil)
	if err != nil && ctx.Err() != nil {
		return r, err
	}
	(&failures{stage: s}).add(ctx, w.Tenant, err)
	s.ended(ctx, &r)
	return r, nil
}

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
