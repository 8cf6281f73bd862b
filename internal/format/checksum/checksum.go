// Package checksum detects damaged bytes. Formats define where the checksums of their bytes are;
// this package computes them, adds them to JSON objects, and defines the error that all readers
// return.
package checksum

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
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

// A JSON object with a checksum ends with this member. Its value is the CRC-32C of all bytes before
// the member, in lower-case hexadecimal. White space after the object is ignored.
//
//	{"a":1,"crc32c":"5d3a4f1e"}
const (
	memberBegin = `"crc32c":"`
	memberEnd   = `"}`
	memberBytes = len(memberBegin) + 8 + len(memberEnd)
)

const jsonSpace = " \t\r\n"

// Append appends the checksum of a JSON object to it as its last member. Decoders that ignore
// unknown members can read the object. Append does not change body's bytes; it keeps white space
// after the object.
func Append(body []byte) ([]byte, error) {
	object := bytes.TrimRight(body, jsonSpace)
	space := body[len(object):]
	inside, ok := bytes.CutSuffix(object, []byte{'}'})
	if !ok {
		return nil, fmt.Errorf("add a checksum to JSON of %d bytes: it does not end with a closing brace", len(body))
	}
	out := make([]byte, 0, len(body)+1+memberBytes)
	out = append(out, inside...)
	if !bytes.HasSuffix(bytes.TrimRight(inside, jsonSpace), []byte{'{'}) {
		out = append(out, ',')
	}
	out = append(out, member(Update(0, out))...)
	return append(out, space...), nil
}

// member returns the member with a checksum, and the end of the object.
func member(crc uint32) string { return fmt.Sprintf(memberBegin+"%08x"+memberEnd, crc) }

// Verify reports whether raw has a checksum, and returns ErrDamaged if it does not match the other
// bytes. An object without a checksum, from before objects had one, is not checked.
func Verify(raw []byte) (present bool, err error) {
	object := bytes.TrimRight(raw, jsonSpace)
	if len(object) < memberBytes {
		return false, nil
	}
	body, last := object[:len(object)-memberBytes], object[len(object)-memberBytes:]
	if !bytes.HasPrefix(last, []byte(memberBegin)) || !bytes.HasSuffix(last, []byte(memberEnd)) {
		return false, nil
	}
	stored := last[len(memberBegin) : len(memberBegin)+8]
	if crc := Update(0, body); member(crc) != string(last) {
		if _, err := hex.DecodeString(string(stored)); err != nil {
			stored = []byte("unreadable")
		}
		return true, fmt.Errorf("%w: %d bytes of JSON have CRC-32C %08x, the object has %s", ErrDamaged, len(body), crc, stored)
	}
	return true, nil
}

// Marshal returns the JSON object of v with its checksum.
func Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return Append(b)
}

// Unmarshal decodes a JSON object, which must have a checksum. Errors: ErrDamaged; others mean that
// the object is not what v is for.
func Unmarshal(raw []byte, v any) error {
	present, err := Verify(raw)
	switch {
	case err != nil:
		return err
	case !present:
		return fmt.Errorf("%w: there is no checksum", ErrDamaged)
	}
	return json.Unmarshal(raw, v)
}
