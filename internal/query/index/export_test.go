package index

// TakeIDs gives a table the stored ids of another one with as many rows, as if those of all series
// collided.
func TakeIDs(t, from *Table) { t.ids = from.ids }
