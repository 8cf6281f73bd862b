package compact

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/queue"
)

// Dispatch is one tick of a planner: it plans for every tenant, sends at most MaxJobsPerTick jobs
// to workers (Work), and collects garbage until the context's deadline is near. The plan decides, a
// message is only a hint: a job that is lost, dropped or done twice is planned again until it is
// done. So ticks may overlap, come late or be left out. Errors are as those of Cycle.
func (s *Stage) Dispatch(ctx context.Context, to queue.Sender) (Report, error) {
	return s.tick(ctx, false, func(r *Report, errs *failures) { r.Sent = s.send(ctx, to, r.Planned, errs) })
}

// Tick is one tick of a planner without workers: it does what Cycle does, within four fifths of the
// time until the context's deadline, and skips idle tenants as Dispatch does. It leaves jobs for
// which there is no time to the next tick.
func (s *Stage) Tick(ctx context.Context) (Report, error) {
	return s.tick(ctx, false, func(r *Report, errs *failures) {
		ctx, cancel := portion(ctx)
		defer cancel()
		r.Jobs = s.runAll(ctx, r.Planned, nil, errs)
	})
}

// portion returns ctx with an earlier deadline: four fifths of the time that is left.
func portion(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)*4/5)
	}
	return context.WithCancel(ctx)
}

// tick plans, lets act run or send the jobs, and collects garbage: for every tenant, or for those
// where it may be worth its requests.
func (s *Stage) tick(ctx context.Context, every bool, act func(*Report, *failures)) (r Report, err error) {
	begin := s.now()
	errs := &failures{stage: s}
	defer func() {
		r.Took = s.now().Sub(begin)
		result := "ok"
		if err != nil {
			result = "error"
		}
		s.met.cycles.WithLabelValues(result).Inc()
	}()
	tenants, err := s.tenants(ctx, begin, every)
	var stored time.Time
	if err == nil {
		stored, err = s.store.Now(ctx) // before any listing: what has settled by then is in it
	}
	if err != nil {
		errs.add(ctx, "", err)
		return r, err
	}
	r.State, r.Planned, r.Checked = s.survey(ctx, begin, stored, tenants, every, errs)
	s.met.saw(&r.State)
	s.met.queue.Set(float64(len(r.Planned)))
	act(&r, errs)
	if every {
		r.Garbage = s.collect(ctx, tenants, errs)
	} else {
		r.Garbage = s.collectWithin(ctx, tenants, errs)
		s.planned(ctx, &r, stored, len(errs.all), s.now().Sub(begin))
	}
	s.met.collected(&r.Garbage)
	return r, errs.join(ctx)
}

// forgotten is how long after its last write a store no longer counts as silent, but as unused.
const forgotten = 24 * time.Hour

// planned logs in one line what a tick found and did. Alarms read it: docs/compaction.md has its
// names.
func (s *Stage) planned(ctx context.Context, r *Report, stored time.Time, failed int, took time.Duration) {
	blocks := 0
	for _, n := range r.State.Blocks {
		blocks += n
	}
	deleted := r.Garbage.Segments.Objects + r.Garbage.Blocks.Objects + r.Garbage.Answers.Objects + r.Garbage.Manifests.Objects
	silent := max(stored.Sub(r.State.Arrived), 0)
	if r.State.Arrived.IsZero() || silent > forgotten {
		silent = 0
	}
	s.log.InfoContext(ctx, "planned", "lag_seconds", r.State.Lag.Round(time.Second).Seconds(), "silent_seconds", silent.Round(time.Second).Seconds(), "tenants", r.State.Tenants, "looked", r.Checked,
		"jobs", len(r.Planned), "sent", r.Sent, "done", r.Of(Done), "failed", failed, "segments", r.State.Segments, "segment_bytes", r.State.SegmentBytes,
		"blocks", blocks, "tombstones", r.State.Tombstones, "garbage_objects", r.State.GarbageSegments+r.State.GarbageBlocks, "deleted_objects", deleted,
		"took_seconds", took.Seconds())
}

// send sends the jobs that a tick may send, and returns their number.
func (s *Stage) send(ctx context.Context, to queue.Sender, work []Work, errs *failures) int {
	seed, err := s.ids.seed()
	if err != nil {
		errs.add(ctx, "", err)
		return 0
	}
	var messages []queue.Message
	for _, w := range choose(work, s.set.MaxJobsPerTick, rand.New(rand.NewPCG(seed, seed))) {
		m, err := w.Message()
		if err != nil {
			errs.add(ctx, w.Tenant, err)
			continue
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return 0
	}
	if err := to.Send(ctx, messages...); err != nil {
		jobs := "jobs"
		if len(messages) == 1 {
			jobs = "job"
		}
		errs.add(ctx, "", fmt.Errorf("send %d %s: %w", len(messages), jobs, err))
		return 0
	}
	return len(messages)
}

// choose returns at most n jobs: one of every tenant, then another one of every tenant, and so on;
// in each round the oldest days first. The jobs of one group come in a random order, so that a job
// that kills its worker does not block the others for ever.
func choose(work []Work, n int, r *rand.Rand) []Work {
	type candidate struct {
		Work
		place int // of its group in the plan
		round int
		day   key.Window
	}
	places := map[string]int{}
	all := make([]candidate, 0, len(work))
	for i, w := range work {
		g := w.Group()
		if _, ok := places[g]; !ok {
			places[g] = i
		}
		all = append(all, candidate{Work: w, place: places[g], day: key.L24h.WindowOf(int64(w.Job.Window))})
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.place, b.place) })
	rounds := map[string]int{}
	for i := range all {
		all[i].round = rounds[all[i].Tenant]
		rounds[all[i].Tenant]++
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.day, b.day)) })
	out := make([]Work, 0, min(n, len(all)))
	for _, c := range all[:min(n, len(all))] {
		out = append(out, c.Work)
	}
	return out
}

// collectWithin collects garbage where it is due, in a random order, until little time is left.
func (s *Stage) collectWithin(ctx context.Context, tenants []string, errs *failures) (sum Garbage) {
	within, cancel := portion(ctx)
	defer cancel()
	due := slices.DeleteFunc(slices.Clone(tenants), func(t string) bool { return !s.collectDue(t) })
	seed, err := s.ids.seed()
	if err != nil {
		errs.add(ctx, "", err)
		return sum
	}
	rand.New(rand.NewPCG(seed, seed)).Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	cut := &failures{stage: s}
	sum = s.collect(within, due, cut)
	if within.Err() == nil || ctx.Err() != nil {
		errs.all = append(errs.all, cut.all...)
	}
	return sum
}
