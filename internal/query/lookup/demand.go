package lookup

import "sync"

const (
	// lastObjects is the number of objects whose reads are counted.
	lastObjects = 32
	// fresh is the number of the newest of them that may still be read more often.
	fresh = 8
	// wanted is the number of reads by which an object was worth its whole table.
	wanted = 16
)

// demand counts how many selectors read each of the last objects that came. If most of those before
// were worth their whole tables, the next one will be: its whole table is read at once, and not its
// rows for each of the first selectors (docs/decisions/030-kept-samples.md). It is safe for
// concurrent use.
type demand struct {
	mu   sync.Mutex
	last [lastObjects]demanded
	next int // the oldest of them
}

type demanded struct {
	object uint32 // the number of its footer
	reads  int
	whole  bool // is worth its whole table at once
}

// whole counts a read of an object by a selector that is new to it, and reports whether its whole
// table should be read at once.
func (d *demand) whole(object uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.last {
		if x := &d.last[i]; x.object == object && x.reads > 0 {
			x.reads++
			return x.whole
		}
	}
	many := 0
	for i := range lastObjects - fresh {
		if d.last[(d.next+i)%lastObjects].reads >= wanted {
			many++
		}
	}
	x := demanded{object, 1, 4*many >= 3*(lastObjects-fresh)}
	d.last[d.next] = x
	d.next = (d.next + 1) % lastObjects
	return x.whole
}
