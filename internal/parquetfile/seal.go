package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/promlake/promlake/internal/checksum"
)

// Every page header and every footer that Writer writes is sealed: its last field is 32767, which
// Parquet reserves for extensions and which other readers step over. The CRC-32C covers where the
// struct begins in its file (8 bytes, little-endian) and all of its bytes before the checksum, so
// that a header which was read from another place does not pass either. A page header that is
// sealed, or that has the page checksum of Parquet, has both: damage that hides one of them is
// found by the other.
//
//	08 fe ff 03  field 32767, of type binary
//	04           of 4 bytes
//	xx xx xx xx  CRC-32C, little-endian
//	00           end of the struct
var sealHead = []byte{0x08, 0xfe, 0xff, 0x03, 0x04}

const sealBytes = 10

// KeyChecksums is the key of the footer's key-value metadata that says that the footer and all page
// headers are sealed and all pages have checksums.
const (
	KeyChecksums   = "promlake.checksums"
	checksumsValue = "1"
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

// Unwrap says what kinds of error this is.
func (e *DamageError) Unwrap() []error { return []error{ErrFormat, checksum.ErrDamaged} }

// mismatch reports a checksum that the bytes do not have.
func mismatch(what string, at, length int64, said, is uint32) error {
	return &DamageError{what, at, length, fmt.Sprintf("it says %08x, they have %08x", said, is)}
}

// sealSum is the checksum of the seal of a struct at an offset of its file; b ends before the
// checksum.
func sealSum(b []byte, at int64) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint64(place[:], uint64(at))
	return checksum.Update(checksum.Update(0, place[:]), b)
}

// seal adds a seal to a struct that begins at an offset of its file. b may be written to.
func seal(b []byte, at int64) []byte {
	b = append(b[:len(b)-1], sealHead...)
	return append(binary.LittleEndian.AppendUint32(b, sealSum(b, at)), 0)
}

// isSealed reports whether a struct ends in a seal.
func isSealed(b []byte) bool {
	n := len(b) - sealBytes
	return n >= 0 && string(b[n:n+len(sealHead)]) == string(sealHead) && b[len(b)-1] == 0
}

// checkSeal reports whether the bytes of a struct are sealed. Errors: DamageError.
func checkSeal(what string, b []byte, at int64) (sealed bool, err error) {
	if !isSealed(b) {
		return false, nil
	}
	n := len(b) - sealBytes
	said, is := binary.LittleEndian.Uint32(b[n+len(sealHead):]), sealSum(b[:n+len(sealHead)], at)
	if said != is {
		return true, mismatch(what, at, int64(len(b)), said, is)
	}
	return true, nil
}

// checkPage holds the stored bytes of a page, at an offset of the file, against its checksum, if it
// has one.
func (c pageSum) checkPage(body []byte, at int64) error {
	if !c.has {
		return nil
	}
	if is := checksum.Page(body); is != c.sum {
		return mismatch("page", at, int64(len(body)), c.sum, is)
	}
	return nil
}

// pageSum is the checksum of a page.
type pageSum struct {
	sum uint32
	has bool
}

// check holds a page header, whose bytes are b and lie at an offset of the file, against its seal,
// and returns the checksum of its page.
func (h *pageHead) check(b []byte, at int64) (pageSum, error) {
	sealed, err := checkSeal("page header", b, at)
	if err == nil && h.hasCRC && !sealed {
		err = &DamageError{"page header", at, int64(len(b)), "it has a page's checksum, but no seal"}
	}
	return pageSum{uint32(h.crc), sealed}, err // a checksum that is 0 is not stored
}
