package index

// Range is the rows [From, To).
type Range struct{ From, To uint32 }

// join appends a range, or extends the last one if it ends at from.
func join(dst []Range, from, to uint32) []Range {
	if n := len(dst); n > 0 && dst[n-1].To == from {
		dst[n-1].To = to
		return dst
	}
	return append(dst, Range{from, to})
}

// Keep returns those of rows for which keep is true.
func Keep(rows []Range, keep func(row int) bool) (out []Range) {
	for _, r := range rows {
		for row := r.From; row < r.To; row++ {
			if keep(int(row)) {
				out = join(out, row, row+1)
			}
		}
	}
	return out
}

// Without returns those of rows that are not in others. Both ascend.
func Without(rows, others []Range) []Range {
	if len(others) == 0 {
		return rows
	}
	var out []Range
	for _, r := range rows {
		for len(others) > 0 && others[0].To <= r.From {
			others = others[1:]
		}
		from := r.From
		for _, o := range others {
			if o.From >= r.To {
				break
			}
			if o.From > from {
				out = append(out, Range{from, o.From})
			}
			from = max(from, o.To)
		}
		if from < r.To {
			out = append(out, Range{from, r.To})
		}
	}
	return out
}

// Union returns the rows that are in a or b. Both ascend.
func Union(a, b []Range) (out []Range) {
	for len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].From <= b[0].From {
			out, a = merge(out, a[0]), a[1:]
		} else {
			out, b = merge(out, b[0]), b[1:]
		}
	}
	return out
}

// merge appends a range, or extends the last one if they touch or overlap.
func merge(dst []Range, r Range) []Range {
	if n := len(dst); n > 0 && dst[n-1].To >= r.From {
		dst[n-1].To = max(dst[n-1].To, r.To)
		return dst
	}
	return append(dst, r)
}
