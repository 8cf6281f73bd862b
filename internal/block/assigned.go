package block

// LastID returns the series_id that the block assigned to the series which was appended last: that
// of its labels, or a later one if another series of the block has it. 0 before the first Append.
func (w *Writer) LastID() uint64 {
	if len(w.rows) == 0 {
		return 0
	}
	return w.rows[len(w.rows)-1].id
}
