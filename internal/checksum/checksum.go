// Package checksum finds bytes that are not those that were written. Formats say where the
// checksums of their bytes stand; this package computes them, seals JSON objects, and has the one
// error that all readers report.
package checksum

import (
	"errors"
	"hash/crc32"
)

// ErrDamaged reports bytes that do not match their checksum. Errors that wrap it name the object
// and the range.
var ErrDamaged = errors.New("bytes are damaged: they do not match their checksum")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Update adds bytes to a CRC-32C, which begins as 0.
func Update(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// Page is the checksum of a Parquet page, as the Parquet format has it: the CRC-32 of gzip over the
// page's bytes as they are stored.
func Page(b []byte) uint32 { return crc32.ChecksumIEEE(b) }
