package remotewrite

import "github.com/promlake/promlake/internal/format/series"

// Len is the number of items in a batch: its float samples, histograms, exemplars and metadata,
// numbered in this order.
func (b *Batch) Len() int {
	return len(b.Floats) + len(b.Hists) + len(b.Exemplars) + len(b.Metadata)
}

// Part is a batch of the items [from, to), whose memory it shares with b. It is not released.
func (b *Batch) Part(from, to int) Batch {
	out := Batch{Generation: b.Generation}
	out.Starts, _, _ = cutout(b.Starts, from, to)
	out.Floats, from, to = cutout(b.Floats, from, to)
	out.Hists, from, to = cutout(b.Hists, from, to)
	out.Exemplars, from, to = cutout(b.Exemplars, from, to)
	out.Metadata, _, _ = cutout(b.Metadata, from, to)
	return out
}

// cutout returns the part of s in [from, to), and both counted from the end of s.
func cutout[T any](s []T, from, to int) (in []T, fromRest, toRest int) {
	n := len(s)
	return s[min(max(from, 0), n):min(max(to, 0), n)], from - n, to - n
}

// Boundary returns where to cut [from, to): between two series, as near to at as possible, or at
// itself if there is one series only.
func (b *Batch) Boundary(from, to, at int) int {
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

// owner identifies the series of an item, and the item's kind.
func (b *Batch) owner(i int) (o struct {
	ref  series.Ref
	kind int
}) {
	switch n, m := len(b.Floats), len(b.Floats)+len(b.Hists); {
	case i < n:
		o.ref = b.Floats[i].Ref
	case i < m:
		o.ref, o.kind = b.Hists[i-n].Ref, 1
	case i < m+len(b.Exemplars):
		o.ref, o.kind = b.Exemplars[i-m].Ref, 2
	default:
		o.ref, o.kind = series.Ref(i), 3
	}
	return o
}
