package plan

import (
	"slices"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// window plans one window of a level and the windows below it. srcs are the live objects within it,
// near all those of its day, both by rank. covered means that a live block of a higher level
// overlaps it: then late data is only merged into parts here, and the higher level takes the parts.
func (p *planner) window(l key.Level, w key.Window, srcs, near []Source, covered bool) {
	r := spanOf(l, w)
	if len(srcs) == 0 || slices.Contains(p.splits, r) {
		return
	}
	settled := slices.DeleteFunc(slices.Clone(srcs), func(s Source) bool { return !p.settled(&s) })
	groups := p.groups(settled)
	most := p.most(groups)
	top := slices.ContainsFunc(srcs, func(s Source) bool { return s.at(l) })
	switch {
	case covered || p.now.Before(p.closes(r)) || slices.ContainsFunc(p.splits, r.overlaps):
		p.below(l, w, srcs, near, covered || top, false)
	case p.idle(l, settled):
	case p.waiting(l, r, settled):
		p.below(l, w, srcs, near, top, false)
	case most < len(groups):
		before := len(p.jobs)
		p.below(l, w, srcs, near, top, true)
		if len(p.jobs) == before {
			p.merge(l, w, slices.Concat(groups[:most]...), near, "too many sources, the oldest first")
		}
	default:
		p.merge(l, w, settled, near, p.why(l, settled))
	}
}

// below plans the windows of the next lower level. crowded asks for parts even of few segments.
func (p *planner) below(l key.Level, w key.Window, srcs, near []Source, covered, crowded bool) {
	if l == key.L2h {
		p.parts(w, near, crowded)
		return
	}
	lower, r := l-1, spanOf(l, w)
	for at := r.from; at < r.to; at += lower.Millis() {
		child := key.Window(at)
		r := spanOf(lower, child)
		var in []Source
		for _, s := range srcs {
			if r.holds(s.span) {
				in = append(in, s)
			}
		}
		switch {
		case !covered || !crowded || len(in) == 0:
			p.window(lower, child, in, near, covered)
		case !slices.ContainsFunc(p.splits, spanOf(lower, child).overlaps):
			// Parts of everything small: the block above has more of them than one job takes.
			p.below(lower, child, in, near, true, true)
		}
	}
}

// idle reports whether the sources are the final state of the window: one block of the level, or
// the slices of one, to which no tombstone applies. No source at all is idle too.
func (p *planner) idle(l key.Level, srcs []Source) bool {
	for i := range srcs {
		if !srcs[i].at(l) || p.hasDeletions(&srcs[i]) {
			return false
		}
	}
	return len(p.groups(srcs)) <= 1
}

// waiting reports whether the sources that are not yet in a block of the level came late, and more
// may come.
func (p *planner) waiting(l key.Level, r span, srcs []Source) bool {
	late := slices.DeleteFunc(slices.Clone(srcs), func(s Source) bool { return s.at(l) })
	if len(late) == 0 || slices.ContainsFunc(srcs, func(s Source) bool { return !s.small() && p.hasDeletions(&s) }) {
		return false
	}
	oldest := &late[0] // by rank, which begins with the time
	inTime := len(late) == len(srcs) && !oldest.written().After(p.closes(r))
	return !inTime && !p.older(oldest, p.set.LateDelay)
}

// hasDeletions reports whether a tombstone applies to samples that the block may hold.
func (p *planner) hasDeletions(s *Source) bool {
	return !s.IsSegment && slices.ContainsFunc(p.snap.Manifest.Tombstones, func(t catalog.Tombstone) bool {
		return t.Covers(s.Through) && t.Overlaps(s.Block.MinT, s.Block.MaxT)
	})
}

// groups returns sources that count as one: the slices of one split, because a slice job reads only
// its own.
func (p *planner) groups(srcs []Source) [][]Source {
	var out [][]Source
	for i, s := range srcs {
		if i > 0 && sliceOf(&srcs[i-1], &s) {
			out[len(out)-1] = append(out[len(out)-1], s)
			continue
		}
		out = append(out, srcs[i:i+1:i+1])
	}
	return out
}

// most returns how many of the first groups one job takes, at least two if there are two: not more
// than MaxSegments and MaxSources, nor than have their segments in MemoryBytes.
func (p *planner) most(groups [][]Source) int {
	var segments, blocks int
	var bytes int64
	for i, g := range groups {
		if s := &g[0]; s.IsSegment {
			segments++
			bytes += s.Bytes / segmentShrink
		} else {
			blocks++
		}
		if i > 1 && (segments > p.set.MaxSegments || blocks > p.set.MaxSources || bytes > p.set.MemoryBytes) {
			return i
		}
	}
	return len(groups)
}

// sliceOf reports whether two blocks are slices of the same whole.
func sliceOf(a, b *Source) bool {
	return !a.IsSegment && !b.IsSegment && a.Block.Slice.Of > 1 && a.Block.Slice.Of == b.Block.Slice.Of &&
		a.Block.Slice.Index != b.Block.Slice.Index && a.Rank == b.Rank && a.span == b.span
}

// why names the rule by which a window is merged.
func (p *planner) why(l key.Level, srcs []Source) string {
	top := slices.ContainsFunc(srcs, func(s Source) bool { return s.at(l) })
	switch {
	case slices.ContainsFunc(srcs, func(s Source) bool { return p.hasDeletions(&s) }):
		return "deletions"
	case top && len(p.groups(srcs)) > 1:
		return "late data"
	default:
		return "window is closed"
	}
}

// merge adds a job, as a split if it is too large for one. It leaves sources alone that are not
// closed: they become closed once the objects between them are merged.
func (p *planner) merge(l key.Level, w key.Window, srcs, near []Source, why string) {
	if len(srcs) == 0 || !closedSet(srcs, near) {
		return
	}
	if n := p.set.slicesFor(srcs); n > 1 && l != key.Part {
		p.add(Split, l, w, srcs, why).Slice.Of = n
		return
	}
	p.add(Merge, l, w, srcs, why)
}

// closedSet reports whether no object that overlaps one of the sources in time, and is none of
// them, has a rank between the lowest and the highest of theirs. Both lists are by rank.
func closedSet(srcs, near []Source) bool {
	lo, hi, r := srcs[0].Rank, srcs[len(srcs)-1].Rank, srcs[0].span
	for i := range srcs {
		r = span{min(r.from, srcs[i].span.from), max(r.to, srcs[i].span.to)}
	}
	rest := srcs // those that do not rank below the object
	for i := range near {
		n := &near[i]
		for len(rest) > 0 && rest[0].Rank.Compare(n.Rank) < 0 {
			rest = rest[1:]
		}
		if n.Rank.Compare(lo) > 0 && n.Rank.Compare(hi) < 0 && n.span.overlaps(r) && !among(rest, n) {
			return false
		}
	}
	return true
}

// among reports whether an object is one of the sources of its rank, with which a list begins.
func among(srcs []Source, n *Source) bool {
	for i := range srcs {
		if srcs[i].Rank != n.Rank {
			return false
		}
		if srcs[i].span == n.span && srcs[i].id() == n.id() {
			return true
		}
	}
	return false
}
