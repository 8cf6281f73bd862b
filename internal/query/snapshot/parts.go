package snapshot

import (
	"slices"
	"sync"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// maxParts is the number of parts that are kept of a snapshot.
const maxParts = 16

// parts are the narrower snapshots that reads took of one. Ranges that have the same objects and
// tombstones share one of them, and so its slices, by which source.Files knows its objects: rules
// and panels of one moment ask for a few windows, each at a slightly different time. It is safe for
// concurrent use.
type parts struct {
	mu   sync.Mutex
	last []part // the one that was used last comes first
}

// part is the snapshot of all ranges that begin in mint and end in maxt.
type part struct {
	mint, maxt span
	snap       *catalog.Snapshot
}

func (x *part) has(mint, maxt int64) bool {
	return x.mint.mint <= mint && mint <= x.mint.maxt && x.maxt.mint <= maxt && maxt <= x.maxt.maxt
}

// narrow returns the snapshot of [mint, maxt] (ms), which the snapshot covers. It is shared, and
// never changed.
func (t *aged) narrow(mint, maxt int64) *catalog.Snapshot {
	p := &t.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.last, func(x part) bool { return x.has(mint, maxt) })
	if i < 0 {
		snap := t.Snapshot.Narrow(mint, maxt)
		x := part{mint: span{key.MinTime, key.MaxTime}, maxt: span{key.MinTime, key.MaxTime}, snap: &snap}
		for i := range t.Snapshot.Segments {
			x.limit(mint, maxt, int64(t.Snapshot.Segments[i].Window), t.Snapshot.Segments[i].Window.End()-1)
		}
		for i := range t.Snapshot.Blocks {
			from, upto := t.Snapshot.Blocks[i].Times()
			x.limit(mint, maxt, from, upto)
		}
		for i := range t.Snapshot.Tombstones {
			x.limit(mint, maxt, t.Snapshot.Tombstones[i].MinT, t.Snapshot.Tombstones[i].MaxT)
		}
		p.last = slices.Insert(p.last[:min(len(p.last), maxParts-1)], 0, x)
		return x.snap
	}
	x := p.last[i]
	copy(p.last[1:i+1], p.last[:i])
	p.last[0] = x
	return x.snap
}

// limit leaves the ranges that begin before the end of [from, upto], or end after its begin, if and
// only if [mint, maxt] does so.
func (x *part) limit(mint, maxt, from, upto int64) {
	if upto < mint {
		x.mint.mint = max(x.mint.mint, upto+1)
	} else {
		x.mint.maxt = min(x.mint.maxt, upto)
	}
	if from > maxt {
		x.maxt.maxt = min(x.maxt.maxt, from-1)
	} else {
		x.maxt.mint = max(x.maxt.mint, from)
	}
}
