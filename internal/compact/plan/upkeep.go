package plan

import (
	"math"
	"slices"
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
