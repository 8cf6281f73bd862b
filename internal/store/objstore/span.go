package objstore

import "fmt"

// Span resolves the offset and length of a Get for an object of size bytes to n bytes from start,
// clipped to the object. Errors: ErrRange.
func Span(offset, length, size int64) (start, n int64, err error) {
	switch {
	case offset < 0:
		start = max(0, size+offset)
	case offset < size, offset == 0 && length < 0:
		start = offset
	default:
		return 0, 0, fmt.Errorf("%w: offset %d of %d bytes", ErrRange, offset, size)
	}
	n = size - start
	if length >= 0 {
		n = min(n, length)
	}
	return start, n, nil
}
