package vector

import "encoding/binary"

// NoOrdinal is the ordinal of a series that is left out: prom_at maps it to NULL.
const NoOrdinal uint32 = 0xFFFFFFFF

// OrdinalArray encodes the value of each ordinal for prom_at: uint32, little-endian.
func OrdinalArray(values []uint32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}
