package block

// TruncateIDs keeps only the bits of mask of every label set's hash, so that ids collide.
func (w *Writer) TruncateIDs(mask uint64) { w.ids.mask = mask }
