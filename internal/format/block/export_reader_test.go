package block

import "math"

// AllowAnyIDs takes every series_id, as truncated ones are.
func (r *Reader) AllowAnyIDs() { r.moved = math.MaxUint64 }
