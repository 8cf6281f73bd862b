package ingest

import "github.com/promlake/promlake/internal/series"

// len is the number of things in a batch: its float samples, histograms, exemplars and descriptions, numbered in this order.
func (b *batch) len() int { return len(b.floats) + len(b.hists) + len(b.exemplars) + len(b.metadata) }

// part is a batch of the things [from, to), which it shares with b. It is not released.
func (b *batch) part(from, to int) batch {
	out := batch{gen: b.gen}
	out.starts, _, _ = cutout(b.starts, from, to)
	out.floats, from, to = cutout(b.floats, from, to)
	out.hists, from, to = cutout(b.hists, from, to)
	out.exemplars, from, to = cutout(b.exemplars, from, to)
	out.metadata, _, _ = cutout(b.metadata, from, to)
	return out
}

// cutout returns what of [from, to) lies in s, and both counted from the end of s.
func cutout[T any](s []T, from, to int) (in []T, fromRest, toRest int) {
	n := len(s)
	return s[min(max(from, 0), n):min(max(to, 0), n)], from - n, to - n
}

// boundary returns where to cut [from, to): between two series, as near to at as can be, or at it if there is one series only.
func (b *batch) boundary(from, to, at int) int {
	for up, down := at, at; up < to || down > from; up, down = up+1, down-1 {
		if up < to && up > from && b.owner(up) != b.owner(up-1) {
			return up
		}
		if down > from && down < to && b.owner(down) != b.owner(down-1) {
			return down
		}
	}
	return at
}

// owner tells the series of a thing, and what it is.
func (b *batch) owner(i int) (o struct {
	ref  series.Ref
	kind int
}) {
	switch n, m := len(b.floats), len(b.floats)+len(b.hists); {
	case i < n:
		o.ref = b.floats[i].ref
	case i < m:
		o.ref, o.kind = b.hists[i-n].ref, 1
	case i < m+len(b.exemplars):
		o.ref, o.kind = b.exemplars[i-m].ref, 2
	default:
		o.ref, o.kind = series.Ref(i), 3
	}
	return o
}
