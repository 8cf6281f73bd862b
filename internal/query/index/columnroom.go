package index

import (
	"slices"
	"sync"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// columnRoom is memory for the columns of one object after the other: the first query for a host
// reads a few columns of each of some objects, and would leave a megabyte of garbage. It belongs to
// one loader at a time.
type columnRoom struct {
	bytes  []byte // what was taken since release, or a later part of it
	values []string
	known  []int32
}

var rooms = sync.Pool{New: func() any { return new(columnRoom) }}

const (
	// leastRoom is the number of bytes for which there is room at first, and maxRoom the number of
	// bytes, values and positions that are kept.
	leastRoom = 128 << 10
	maxRoom   = 1 << 20
)

// release lets others have the memory, which nobody uses any more.
func (r *columnRoom) release() {
	if cap(r.bytes) > maxRoom || cap(r.values) > maxRoom || cap(r.known) > maxRoom {
		return
	}
	clear(r.values)
	r.bytes, r.values = r.bytes[:0], r.values[:0]
	rooms.Put(r)
}

// free returns memory that take has not returned yet, of length 0.
func (r *columnRoom) free() []byte { return r.bytes[len(r.bytes):] }

// take returns n bytes of memory.
func (r *columnRoom) take(n int) []byte {
	if n > cap(r.bytes)-len(r.bytes) { // who has taken the rest keeps it
		r.bytes = make([]byte, 0, max(leastRoom, 2*cap(r.bytes), n))
	}
	from := len(r.bytes)
	r.bytes = r.bytes[:from+n]
	return r.bytes[from : from+n : from+n]
}

// keep returns bytes that stay what they are until release: b itself if that lies in free memory,
// or a copy.
func (r *columnRoom) keep(b []byte) []byte {
	if free := r.free(); len(b) > 0 && len(b) <= cap(free) && &b[0] == &free[:1][0] {
		return r.take(len(b))
	}
	out := r.take(len(b))
	copy(out, b)
	return out
}

// strings returns memory for the entries of the dictionary of a chunk, of length 0.
func (r *columnRoom) strings(c *parquetfile.ChunkReader) []string {
	const least = 4 // bytes of an entry: a damaged chunk may claim any number of them
	n := max(0, min(c.DictLen, len(c.Dict)/least))
	if n > cap(r.values)-len(r.values) {
		r.values = make([]string, 0, max(n, 2*cap(r.values)))
	}
	from := len(r.values)
	r.values = r.values[:from+n]
	return r.values[from : from : from+n]
}

// positions returns n zeros, until the next call.
func (r *columnRoom) positions(n int) []int32 {
	r.known = slices.Grow(r.known[:0], n)[:n]
	clear(r.known)
	return r.known
}
