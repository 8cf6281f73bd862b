package inspectapp

import (
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// listing is what lies under a tenant's prefixes of data.
type listing struct {
	segments map[catalog.SegmentID]int64 // bytes
	blocks   map[catalog.BlockID]Pile
	foreign  Pile
}

func (p *Pile) add(bytes int64) { p.Objects, p.Bytes = p.Objects+1, p.Bytes+bytes }

func (p *Pile) join(o Pile) { p.Objects, p.Bytes = p.Objects+o.Objects, p.Bytes+o.Bytes }

func (l *listing) addSegment(obj objstore.Object) {
	s, err := key.ParseSegment(obj.Key)
	if err != nil {
		l.foreign.add(obj.Size)
		return
	}
	l.segments[catalog.SegmentIDOf(s)] = obj.Size
}

func (l *listing) addFile(obj objstore.Object) {
	b, _, err := key.ParseBlockFile(obj.Key)
	if err != nil {
		l.foreign.add(obj.Size)
		return
	}
	id := catalog.BlockID{Level: b.Level, Window: b.Window, ID: b.ID}
	f := l.blocks[id]
	f.add(obj.Size)
	l.blocks[id] = f
}

// garbage sorts the listed objects that are not live by their state in the manifest.
func (l *listing) garbage(m *catalog.Manifest) Garbage {
	g := Garbage{Foreign: l.foreign}
	for _, c := range m.Consumed {
		if n, ok := l.segments[c.SegmentID]; ok {
			g.Consumed.add(n)
		}
	}
	known := map[catalog.BlockID]bool{}
	for i := range m.Blocks {
		known[m.Blocks[i].BlockID()] = true
	}
	for _, s := range m.Splits {
		for i := range s.Done {
			known[s.Done[i].BlockID()] = true
		}
	}
	for _, r := range m.Retired {
		known[r.BlockID] = true
		g.Retired.join(l.blocks[r.BlockID])
	}
	for id, f := range l.blocks {
		if !known[id] {
			g.Unlisted.join(f)
		}
	}
	return g
}
