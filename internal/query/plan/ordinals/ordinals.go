// Package ordinals packs the maps between series and ordinals that statements carry as BLOB
// arguments.
package ordinals

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// None is the ordinal of a series that is left out: prom_at maps it to NULL.
const None uint32 = 0xFFFFFFFF

// Map encodes a map for prom_pick: entries of a key (uint64) and its value (uint32), little-endian,
// 12 bytes each, ascending by key. The slices are parallel. Keys are distinct.
func Map(keys []uint64, values []uint32) []byte {
	type entry struct {
		key   uint64
		value uint32
	}
	entries := make([]entry, len(keys))
	for i, k := range keys {
		entries[i] = entry{k, values[i]}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	out := make([]byte, 0, 12*len(entries))
	for _, e := range entries {
		out = binary.LittleEndian.AppendUint64(out, e.key)
		out = binary.LittleEndian.AppendUint32(out, e.value)
	}
	return out
}

// Array encodes the value of each ordinal for prom_at: uint32, little-endian.
func Array(values []uint32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}
