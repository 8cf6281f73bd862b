package plan

import (
	"github.com/promlake/promlake/internal/format/key"
)

// growth is the least ratio of a merge of parts to its largest source. It makes the number of times
// that a sample is rewritten logarithmic in the size of its window.
const growth = 4

// parts plans merges of the segments and parts of a 2h window that are neighbours in rank. near are
// all live objects of the day: an object of the window that no part may take separates its
// neighbours.
func (p *planner) parts(w key.Window, near []Source, crowded bool) {
	r := spanOf(key.L2h, w)
	var run []Source
	flush := func() {
		if crowded {
			p.chunks(w, run, near, func([]Source) bool { return true }, "more sources than one job takes")
		} else {
			each(run, func(s *Source) bool { return s.IsSegment }, func(segs []Source) {
				p.chunks(w, segs, near, p.due, "segments wait")
			})
			// Plan merges of parts that are neighbours and of similar size.
			each(run, func(s *Source) bool { return !s.IsSegment }, func(parts []Source) {
				for from := 0; from+p.set.MinPartSegments <= len(parts); {
					n := p.tier(parts[from:])
					if n == 0 {
						from++
						continue
					}
					p.merge(key.Part, w, parts[from:from+n], near, "parts of similar size")
					from += n
				}
			})
		}
		run = run[:0:0]
	}
	for _, s := range near {
		switch {
		case !s.span.overlaps(r):
		case s.small() && p.settled(&s) && !p.expired(&s):
			run = append(run, s)
		default:
			flush()
		}
	}
	flush()
}

// maxWaiting is the number of segments that start a merge before they have reached PartAge, so that
// readers of other processes do not find too many.
const maxWaiting = 512

// due reports whether segments, the oldest first, have waited for enough others.
func (p *planner) due(segs []Source) bool {
	byAge := p.set.PartAge > 0
	switch oldest := &segs[0]; {
	case byAge && p.older(oldest, p.set.PartAge):
		return true
	case byAge && !oldest.written().Before(p.set.PartFrom):
		return len(segs) >= maxWaiting
	default:
		return len(segs) >= p.set.MinPartSegments || bytesOf(segs) >= p.set.PartBytes
	}
}

func bytesOf(srcs []Source) (n int64) {
	for i := range srcs {
		n += srcs[i].Bytes
	}
	return n
}

// chunks plans a job for as many of the run as one takes, again and again, and for the rest if it
// has at least two sources and is due.
func (p *planner) chunks(w key.Window, run, near []Source, due func([]Source) bool, why string) {
	for len(run) > 1 {
		n := p.most(p.groups(run))
		if !due(run[:n]) {
			return
		}
		p.merge(key.Part, w, run[:n], near, why)
		run = run[n:]
	}
}

// tier returns how many of the first parts to merge: as many as possible, so that the result is at
// least growth times as large as the largest of them.
func (p *planner) tier(parts []Source) (best int) {
	var sum, largest int64
	for i := range parts[:min(len(parts), p.set.MaxSources)] {
		n := max(1, parts[i].samples())
		sum, largest = sum+n, max(largest, n)
		if i+1 >= p.set.MinPartSegments && sum >= growth*largest {
			best = i + 1
		}
	}
	return best
}

// each calls f with every longest run of neighbours that keep holds.
func each(srcs []Source, keep func(*Source) bool, f func([]Source)) {
	from := 0
	for i := range srcs {
		if keep(&srcs[i]) {
			continue
		}
		if from < i {
			f(srcs[from:i])
		}
		from = i + 1
	}
	if from < len(srcs) {
		f(srcs[from:])
	}
}
