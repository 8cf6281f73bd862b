package compact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/objstore"
)

// cleanupTimeout bounds the removal of what a lost job has written.
const cleanupTimeout = 30 * time.Second

// Run does one job of a plan. It may be called for any job at any time: a job whose sources are no longer what they were, or that was planned
// more than catalog.MaxJobAge ago, is a Conflict, which is no error. The result is valid with an error too.
func (s *Stage) Run(ctx context.Context, tenant string, job Job) (Result, error) {
	return s.run(ctx, tenant, job, nil)
}

func (s *Stage) run(ctx context.Context, tenant string, job Job, progress Progress) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.set.JobTimeout, fmt.Errorf("job takes longer than %s (job timeout)", s.set.JobTimeout))
	defer cancel()
	begin := s.now()
	r := Result{Tenant: tenant, Job: job, Outcome: Done}
	err := s.do(ctx, &r, progress)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	r.Took = s.now().Sub(begin)
	switch {
	case errors.Is(err, catalog.ErrConflict):
		r.Outcome, r.Err, err = Conflict, err, nil
	case err != nil:
		err = fmt.Errorf("%s: %w", job, err)
		r.Outcome, r.Err = Failed, err
	}
	s.met.ran(&r)
	return r, err
}

func (s *Stage) do(ctx context.Context, r *Result, progress Progress) error {
	switch job := &r.Job; job.Kind {
	case Expire:
		return s.commit(ctx, r.Tenant, func(m catalog.Manifest) (catalog.Manifest, error) { return m.Expire(s.now(), job.Sources) })
	case Drop:
		return s.commit(ctx, r.Tenant, func(m catalog.Manifest) (catalog.Manifest, error) { return m.DropTombstones(job.Drop) })
	case Split:
		return s.split(ctx, r.Tenant, job)
	default:
		return s.merge(ctx, r, progress)
	}
}

// commit is the only way in which this stage changes what is live.
func (s *Stage) commit(ctx context.Context, tenant string, change func(catalog.Manifest) (catalog.Manifest, error)) error {
	_, err := catalog.Commit(ctx, s.store, tenant, s.now, change)
	return err
}

// split records that a job is to be done in slices. The split's identifier has the time of the plan: a commit refuses it when that was so
// long ago that the sources may have been replaced, deleted and forgotten.
func (s *Stage) split(ctx context.Context, tenant string, job *Job) error {
	id, err := s.ids.next(job.Planned)
	if err != nil {
		return err
	}
	sp := catalog.Split{ID: id, Level: job.Level, Window: job.Window, Of: job.Slice.Of, Sources: job.Sources}
	return s.commit(ctx, tenant, func(m catalog.Manifest) (catalog.Manifest, error) { return m.BeginSplit(s.now(), sp) })
}

// begin reads the manifest for a job and returns the time at which the job begins. A job that was planned too long ago is a conflict: nothing
// would tell that its sources were replaced since, once they are deleted and forgotten.
func (s *Stage) begin(ctx context.Context, tenant string, job *Job) (catalog.Manifest, time.Time, error) {
	now := s.now() // before the manifest is read: the commit checks the age of what was read
	m, _, err := catalog.ReadManifest(ctx, s.store, tenant)
	if err != nil {
		return m, now, err
	}
	now = later(now, m.Time())
	if age := now.Sub(job.Planned); age > catalog.MaxJobAge {
		return m, now, fmt.Errorf("planned %s ago, the limit is %s: %w", age, catalog.MaxJobAge, catalog.ErrConflict)
	}
	return m, now, nil
}

// explain turns the absence of a source's object into a conflict if the manifest has moved on meanwhile. Otherwise data is missing.
func (s *Stage) explain(ctx context.Context, tenant string, job *Job, err error) error {
	if !errors.Is(err, objstore.ErrNotFound) {
		return err
	}
	m, _, merr := catalog.ReadManifest(ctx, s.store, tenant)
	if merr != nil {
		return errors.Join(err, merr)
	}
	if _, cerr := resolve(&m, job); cerr != nil {
		return cerr
	}
	return fmt.Errorf("a live object is missing: %w", err)
}
