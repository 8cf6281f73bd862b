package duck

import (
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Vector is a view of one column (or of a list's elements) in a chunk. It and everything obtained
// from it are valid until the next call of Rows.Next or Rows.Close. The caller must use the
// accessor of the column's type.
type Vector struct {
	v        mapping.Vector
	n        int
	validity unsafe.Pointer // bit set = not NULL; nil = no NULLs
}

func newVector(v mapping.Vector, n int) Vector {
	return Vector{v, n, mapping.VectorGetValidity(v)}
}

// Valid reports whether value i is not NULL.
func (v Vector) Valid(i int) bool {
	if v.validity == nil {
		return true
	}
	words := unsafe.Slice((*uint64)(v.validity), i/64+1)
	return words[i/64]>>(uint(i)%64)&1 == 1
}

func view[T any](v Vector) []T {
	if v.n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(mapping.VectorGetData(v.v)), v.n)
}

// Int64s returns the values of a BIGINT column.
func (v Vector) Int64s() []int64 { return view[int64](v) }

// Uint32s returns the values of a UINTEGER column.
func (v Vector) Uint32s() []uint32 { return view[uint32](v) }

// Uint64s returns the values of a UBIGINT column.
func (v Vector) Uint64s() []uint64 { return view[uint64](v) }

// Float64s returns the values of a DOUBLE column.
func (v Vector) Float64s() []float64 { return view[float64](v) }

// Strings returns the values of a VARCHAR column.
func (v Vector) Strings() []String { return view[String](v) }

// Entry is the place of one list in the elements of its vector.
type Entry struct{ Offset, Length uint64 }

// List returns the lists of a LIST column and all their elements.
func (v Vector) List() ([]Entry, Vector) {
	n := int(mapping.ListVectorGetSize(v.v))
	return view[Entry](v), newVector(mapping.ListVectorGetChild(v.v), n)
}

// inlineLen is the longest string, in bytes, that DuckDB keeps inside the 16-byte value; longer
// ones are behind a pointer.
const inlineLen = 12

// String is DuckDB's string_t:
//
//	0        4                  16
//	| length | inline bytes ... |    length ≤ 12
//	| length | prefix | pointer |    length > 12
type String struct {
	n      uint32
	prefix [4]byte
	tail   [8]byte
}

// Len returns the length in bytes.
func (s *String) Len() int { return int(s.n) }

// Bytes returns the bytes, which belong to the chunk.
func (s *String) Bytes() []byte {
	if s.n == 0 {
		return nil
	}
	if s.n <= inlineLen {
		return unsafe.Slice((*byte)(unsafe.Pointer(&s.prefix)), s.n)
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&s.tail)), s.n)
}

// String returns a copy.
func (s *String) String() string { return string(s.Bytes()) }
