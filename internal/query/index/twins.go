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
		if o := x.last[i].Value(); o != nil && slices.Equal(o.ids, t.ids) && o.sameLabels(t) {
			t.names, t.columns, t.ids, t.keys = o.names, o.columns, o.ids, o.keys
			shares = true
			break
		}
	}
	x.last[x.next] = weak.Make(t)
	x.next = (x.next + 1) % remembered
	return shares
}

// sameLabels reports whether the rows of both tables have the same label sets, by their keys or by
// the hashes of their labels, of which keys are the sums.
func (t *Table) sameLabels(o *Table) bool {
	if t.keys != nil || o.keys != nil {
		return slices.Equal(t.keys, o.keys)
	}
	return slices.Equal(t.names, o.names) && slices.EqualFunc(t.columns, o.columns, (column).same)
}

// same reports whether both columns have the same labels in all rows. Both have hashes.
func (c column) same(o column) bool {
	return slices.Equal(c.hashes, o.hashes) && slices.Equal(c.ends, o.ends) &&
		slices.Equal(c.codes.b1, o.codes.b1) && slices.Equal(c.codes.b2, o.codes.b2) && slices.Equal(c.codes.b4, o.codes.b4)
}
