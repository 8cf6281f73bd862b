package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// planner is one call of Jobs.
type planner struct {
	set  *Policy
	now  time.Time
	snap *catalog.Snapshot
	jobs []Job

	splits []span // windows of the splits under way
	before int64  // ms: what is older is past its retention
}

// Jobs returns the jobs that bring a tenant's objects nearer to one 24h block a day. It is pure and
// deterministic: the same snapshot (of all of time) and the same time (of the store's clock, before
// the snapshot was taken) give the same jobs in the same order. No two jobs share a source, and
// each may run whether or not the others do. If the plan is empty, there is nothing to do now.
func Jobs(policy Policy, now time.Time, snap catalog.Snapshot) []Job {
	p := &planner{set: &policy, now: now, snap: &snap}
	all := live(&snap)
	p.slices()
	// Plan the removal of tombstones that have nothing left to delete, now or later. A segment of
	// the queue can be covered without being sealed; once a tombstone is no longer pending, the
	// listing has all such segments.
	var ids []ulid.ULID
	for _, t := range p.snap.Manifest.Tombstones {
		covers := func(s Source) bool {
			return s.IsSegment && t.Covers(s.Through) && t.Overlaps(s.span.from, s.span.to-1)
		}
		if !p.snap.Manifest.Pending(p.now, t) && !slices.ContainsFunc(all, covers) {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) > 0 {
		p.jobs = append(p.jobs, Job{Kind: Drop, Drop: ids, Why: "nothing is left that they apply to"})
	}
	p.expire(all)
	for _, day := range days(all) {
		stay := slices.DeleteFunc(slices.Clone(day), func(s Source) bool { return p.expired(&s) })
		p.window(key.L24h, key.L24h.WindowOf(day[0].span.from), stay, day, false)
	}
	for i := range p.jobs {
		p.jobs[i].Planned = Later(now, snap.Manifest.Time())
	}
	return p.jobs
}

// Later returns the later of two times. Commits and jobs judge a job's age by the manifest's time
// if that is ahead of the clock.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// days groups sources by the 24h window that holds them, in the order of time, each group by rank.
// Windows nest, so no source overlaps another day.
func days(all []Source) [][]Source {
	byDay := map[key.Window][]Source{}
	for _, s := range all {
		d := key.L24h.WindowOf(s.span.from)
		byDay[d] = append(byDay[d], s)
	}
	out := make([][]Source, 0, len(byDay))
	for _, d := range byDay {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b []Source) int {
		return cmp.Compare(key.L24h.WindowOf(a[0].span.from), key.L24h.WindowOf(b[0].span.from))
	})
	return out
}

// settled reports whether the listing has every segment that is older than the source. A block can
// be too new for it as well, because the manifest is read after the listing.
func (p *planner) settled(s *Source) bool { return p.older(s, p.set.SettleDelay) }

// older reports whether the newest write of the source was at least d ago.
func (p *planner) older(s *Source, d time.Duration) bool { return !s.written().After(p.now.Add(-d)) }

// closes returns when WindowDelay has passed since the end of the range.
func (p *planner) closes(r span) time.Time { return time.UnixMilli(r.to).Add(p.set.WindowDelay) }

// add appends a job over sources, by rank.
func (p *planner) add(kind Kind, l key.Level, w key.Window, srcs []Source, why string) *Job {
	j := Job{Kind: kind, Level: l, Window: w, Sources: SourcesOf(srcs), Why: why}
	for i := range srcs {
		j.Bytes += srcs[i].Bytes
		if !srcs[i].IsSegment {
			j.Samples += srcs[i].Block.Samples
		}
	}
	p.jobs = append(p.jobs, j)
	return &p.jobs[len(p.jobs)-1]
}
