package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/promlake/promlake/internal/format/checksum"
)

// Writer adds a checksum field to every footer and every page header, as the struct's last field. It
// holds a CRC-32C of the struct's offset in its file (8 bytes, little-endian) and of its bytes
// before the checksum. Because of the offset, a struct that is read at a wrong place does not match.
// A page header must have both this field and Parquet's page checksum, or neither: so each reveals
// damage that hides the other.
//
// In a footer the field is 32767, which Parquet reserves for extensions:
//
//	08 fe ff 03  field 32767, of type binary
//	04           of 4 bytes
//	xx xx xx xx  CRC-32C, little-endian
//	00           end of the struct
//
// In a page header it is the integer 20: Polars fails if a page header has an unknown field of type
// binary, and fastparquet if the number of a field is not a distance from the field before.
//
//	f5, d5       field 20, of type i32, 15 fields after the one before (a data page), or 13
//	1 to 5 bytes CRC-32C as a signed number, zigzag varint
//	00           end of the struct
//
// The headers of older files have the field of footers.
var sumHead = []byte{0x08, 0xfe, 0xff, 0x03, 0x04}

const (
	sumBytes   = 10
	headSumID  = 20
	lastHeadID = 8 // the last field of page headers in Parquet's format
)

// KeyChecksums is the key of the footer's key-value metadata that declares that the footer and all
// page headers have checksum fields and that all pages have checksums.
const (
	KeyChecksums     = "promlake.checksums"
	checksumsVersion = 2 // in 1, page headers have the field of footers
)

// DamageError reports bytes of a file that do not match their checksum. It is an ErrFormat and a
// checksum.ErrDamaged.
type DamageError struct {
	What           string
	Offset, Length int64 // in the file, bytes
	detail         string
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s at bytes %d to %d of the file: %v: %s", e.What, e.Offset, e.Offset+e.Length, checksum.ErrDamaged, e.detail)
}

// Unwrap returns ErrFormat and checksum.ErrDamaged.
func (e *DamageError) Unwrap() []error { return []error{ErrFormat, checksum.ErrDamaged} }

// mismatch returns the error for a stored checksum that differs from the computed one.
func mismatch(what string, at, length int64, stored, computed uint32) error {
	return &DamageError{what, at, length, fmt.Sprintf("the stored checksum is %08x, the computed one %08x", stored, computed)}
}

// structSum returns the checksum of a struct at an offset of its file. b is the struct up
// to the checksum.
func structSum(b []byte, at int64) uint32 {
	return checksum.Update(checksum.UpdateUint64(0, uint64(at)), b)
}

// addHeadSum adds a checksum field to a page header at an offset of its file; last is the number of
// its last field. It may write to b.
func addHeadSum(b []byte, last int, at int64) []byte {
	b = append(b[:len(b)-1], byte((headSumID-last)<<4|typeInt))
	return append(appendInt(b, int32(structSum(b, at))), stop)
}

// hasSum reports whether a struct ends with the checksum field of footers.
func hasSum(b []byte) bool {
	n := len(b) - sumBytes
	return n >= 0 && string(b[n:n+len(sumHead)]) == string(sumHead) && b[len(b)-1] == 0
}

// checkSum reports whether a struct has the checksum field of footers, and checks it. Errors:
// DamageError.
func checkSum(what string, b []byte, at int64) (found bool, err error) {
	if !hasSum(b) {
		return false, nil
	}
	n := len(b) - sumBytes
	stored, computed := binary.LittleEndian.Uint32(b[n+len(sumHead):]), structSum(b[:n+len(sumHead)], at)
	if stored != computed {
		return true, mismatch(what, at, int64(len(b)), stored, computed)
	}
	return true, nil
}

// checkPage checks the stored bytes of a page, at an offset of the file, against its checksum, if
// it has one.
func (c pageSum) checkPage(body []byte, at int64) error {
	if !c.has {
		return nil
	}
	if sum := checksum.Page(body); sum != c.sum {
		return mismatch("page", at, int64(len(body)), c.sum, sum)
	}
	return nil
}

// pageSum is the checksum of a page.
type pageSum struct {
	sum uint32
	has bool
}

// check verifies the checksum field of a page header, whose bytes are b at an offset of the file,
// and returns the checksum of its page.
func (h *pageHead) check(b []byte, at int64) (pageSum, error) {
	found, err := h.checkOwn(b, at)
	if err == nil && h.hasCRC && !found {
		err = &DamageError{"page header", at, int64(len(b)), "it has a page checksum, but no checksum field"}
	}
	return pageSum{uint32(h.crc), found}, err // a checksum of 0 is not stored
}

// checkOwn reports whether a page header has a checksum field of either kind, and checks it.
func (h *pageHead) checkOwn(b []byte, at int64) (found bool, err error) {
	if h.sumAt == 0 {
		return checkSum("page header", b, at)
	}
	stored, computed := uint32(h.sum), structSum(b[:h.sumAt], at)
	switch {
	case h.sumEnd+1 != len(b) || b[h.sumEnd] != stop:
		err = &DamageError{"page header", at, int64(len(b)), "its checksum is not its last field"}
	case int64(int32(h.sum)) != h.sum || stored != computed:
		err = mismatch("page header", at, int64(len(b)), stored, computed)
	}
	return true, err
}
