package lookup

import "sync"

const (
	// countedObjects is the number of objects whose reads are counted.
	countedObjects = 1 << 10
	// youngObjects is the number of the newest of them that may still be read more often, and
	// judgedObjects that of those before by which a new one is judged.
	youngObjects  = 8
	judgedObjects = 56
	// fewestJudged is the number of these that selectors must have read.
	fewestJudged = 16
	// worthReads is the number of reads by which an object was worth its whole table.
	worthReads = 16
)

// demand counts how many selectors read each of the objects whose footers were read last. If most of
// those that came before an object were worth their whole tables, it will be: its whole table is read
// at once, and not its rows for each of the first selectors (docs/decisions/030-kept-samples.md). It
// is safe for concurrent use.
type demand struct {
	mu   sync.Mutex
	last [countedObjects]demanded // each at the number of its footer, modulo their number
}

type demanded struct {
	object, reads uint32 // none if there are no reads
	whole         bool   // is worth its whole table at once
}

// whole counts a read of an object by a selector that is new to it, and reports whether its whole
// table should be read at once.
func (d *demand) whole(object uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.of(object)
	if x == nil {
		x = &d.last[object%countedObjects]
		judged, worth := 0, 0
		for i := range uint32(judgedObjects) {
			if x := d.of(object - youngObjects - 1 - i); x != nil {
				judged++
				if x.reads >= worthReads {
					worth++
				}
			}
		}
		*x = demanded{object: object, whole: judged >= fewestJudged && 4*worth >= 3*judged}
	}
	x.reads++
	return x.whole
}

// of returns what is counted of an object, nil if nothing is.
func (d *demand) of(object uint32) *demanded {
	if x := &d.last[object%countedObjects]; x.object == object && x.reads > 0 {
		return x
	}
	return nil
}
