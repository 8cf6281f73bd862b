// Package checksum detects damaged bytes. Formats define where the checksums of their bytes are;
// this package computes them, adds them to JSON objects, and defines the error that all readers
// return.
package checksum

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

// ErrDamaged reports bytes that do not match their checksum. Errors that wrap it name the object
// and the byte range.
var ErrDamaged = errors.New("bytes are damaged: they do not match their checksum")

// ErrUnknownVersion reports bytes of a format that this program does not know: they may be sound.
var ErrUnknownVersion = errors.New("unknown version")

// CheckVersion returns ErrUnknownVersion unless text is a version from 1 to most of a format.
func CheckVersion(format, text string, most int) error {
	if n, err := strconv.Atoi(text); err == nil && 1 <= n && n <= most {
		return nil
	}
	return fmt.Errorf("%w %q of %s; this program reads up to %d; upgrade promlake", ErrUnknownVersion, text, format, most)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Update adds bytes to a CRC-32C. The initial value is 0.
func Update(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// UpdateUint64 adds a number to a CRC-32C, as its 8 bytes, little-endian.
func UpdateUint64(crc uint32, v uint64) uint32 {
	crc = ^crc
	for range 8 {
		crc = castagnoli[byte(crc)^byte(v)] ^ crc>>8
		v >>= 8
	}
	return ^crc
}

// Page returns the checksum of a Parquet page as the Parquet format defines it: the CRC-32 of gzip
// over the page's stored bytes.
func Page(b []byte) uint32 { return crc32.ChecksumIEEE(b) }
