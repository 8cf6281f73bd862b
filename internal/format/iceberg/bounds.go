package iceberg

import "encoding/binary"

// LongBound returns a long as bounds have it (appendix D).
func LongBound(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// StringBound returns a string as bounds have it.
func StringBound(v string) []byte { return []byte(v) }
