package index

import (
	"slices"
	"sync"
	"weak"
)

// remembered is the number of tables with which Twins compares a new one.
const remembered = 8

// Twins lets tables of the same series share the memory of their labels: the blocks that a process
// makes of one minute of scrapes after the other mostly have the same series. It keeps no table in
// memory, and is safe for concurrent use.
type Twins struct {
	mu   sync.Mutex
	last [remembered]weak.Pointer[Table]
	next int
}

// Share lets t, a whole table that nobody else uses yet, take the labels of a table of the same
// series, if one of those that were given last is still in memory, and reports whether it does. All
// must have the same seed.
func (x *Twins) Share(t *Table) (shares bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.last {
		// Equal keys are equal label sets.
		if o := x.last[i].Value(); o != nil && slices.Equal(o.ids, t.ids) && slices.Equal(o.keys, t.keys) {
			t.names, t.columns, t.ids, t.keys = o.names, o.columns, o.ids, o.keys
			shares = true
			break
		}
	}
	x.last[x.next] = weak.Make(t)
	x.next = (x.next + 1) % remembered
	return shares
}
