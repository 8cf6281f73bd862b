package plan

import (
	"math"
	"slices"

	"github.com/oklog/ulid/v2"
)

// expire plans the removal of sources that are past the tenant's retention.
func (p *planner) expire(all []Source) {
	keep, ok := p.set.TenantRetention[p.snap.Tenant]
	if !ok {
		keep = p.set.Retention
	}
	p.before = math.MinInt64
	if keep == 0 { // for ever
		return
	}
	p.before = p.now.Add(-keep).UnixMilli()
	var gone []Source
	for _, s := range all {
		if p.expired(&s) {
			gone = append(gone, s)
		}
	}
	for part := range slices.Chunk(gone, MaxExpire) {
		p.add(Expire, 0, 0, part, "older than the retention of "+keep.String())
	}
}

// MaxExpire bounds the objects of one Expire job, and so its message.
const MaxExpire = 1024

// expired reports whether all of the source is past its retention. A source that a split claims
// does not expire before the split is done.
func (p *planner) expired(s *Source) bool {
	end := s.span.to // exclusive
	if !s.IsSegment && s.Block.MinT <= s.Block.MaxT {
		end = s.Block.MaxT + 1
	}
	return end <= p.before && !slices.ContainsFunc(p.splits, s.span.overlaps)
}

// drop plans the removal of tombstones that have nothing left to delete, now or later. A segment of
// the queue can be covered without being sealed; once a tombstone is no longer pending, the listing
// has all such segments.
func (p *planner) drop(all []Source) {
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
}
