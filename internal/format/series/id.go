package series

import (
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
)

// sep terminates every name and every value in the bytes that IDOf hashes. It never occurs in UTF-8
// text, so the encoding is injective.
const sep = 0xff

func appendLabel(buf []byte, name, value string) []byte {
	buf = append(buf, name...)
	buf = append(buf, sep)
	buf = append(buf, value...)
	return append(buf, sep)
}

// IDOf returns the stable 64-bit identifier of a label set: xxh3-64 (seed 0) over name, 0xFF,
// value, 0xFF of every label (including __name__). lset is in the order of names and has no empty
// values, as Table.Intern takes it. The ID is the same in every segment and block, so SQL queries
// may join on it. Two label sets may share an ID; the identity of a series is its label set. IDOf
// uses buf's memory and returns it.
func IDOf(lset []Label, buf []byte) (uint64, []byte) {
	buf = buf[:0]
	for _, l := range lset {
		buf = appendLabel(buf, l.Name, l.Value)
	}
	return xxh3.Hash(buf), buf
}

// SortLabels sorts labels by name. Those of one name keep their order.
func SortLabels(lset []Label) {
	slices.SortStableFunc(lset, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
}

// LastOfEach sorts labels by name and keeps the last one of each name. It uses lset's memory.
func LastOfEach(lset []Label) []Label {
	SortLabels(lset)
	out := lset[:0]
	for i, l := range lset {
		if i+1 == len(lset) || lset[i+1].Name != l.Name {
			out = append(out, l)
		}
	}
	return out
}
