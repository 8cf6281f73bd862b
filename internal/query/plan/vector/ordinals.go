package vector

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// NoOrdinal is the ordinal of a series that is left out: prom_at maps it to NULL.
const NoOrdinal uint32 = 0xFFFFFFFF

// OrdinalMap encodes a map for prom_pick: entries of a key (uint64) and its value (uint32),
// little-endian, 12 bytes each, ascending by key. The slices are parallel. Keys are distinct.
func OrdinalMap(keys []uint64, values []uint32) []byte {
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

// OrdinalArray encodes the value of each ordinal for prom_at: uint32, little-endian.
func OrdinalArray(values []uint32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}
