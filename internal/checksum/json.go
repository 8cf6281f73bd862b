package checksum

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// A sealed JSON object ends with this member, whose value is the CRC-32C of all bytes before the
// member, in lower-case hexadecimal. White space after the object is ignored.
//
//	{"a":1,"crc32c":"5d3a4f1e"}
const (
	sealBegin = `"crc32c":"`
	sealEnd   = `"}`
	sealBytes = len(sealBegin) + 8 + len(sealEnd)
)

const jsonSpace = " \t\r\n"

// Seal appends the checksum of a JSON object to it as its last member. Decoders that ignore unknown
// members can read the object. Seal does not change body's bytes; it keeps white space after the
// object.
func Seal(body []byte) ([]byte, error) {
	object := bytes.TrimRight(body, jsonSpace)
	space := body[len(object):]
	inside, ok := bytes.CutSuffix(object, []byte{'}'})
	if !ok {
		return nil, fmt.Errorf("seal JSON of %d bytes: it does not end with a closing brace", len(body))
	}
	out := make([]byte, 0, len(body)+1+sealBytes)
	out = append(out, inside...)
	if !bytes.HasSuffix(bytes.TrimRight(inside, jsonSpace), []byte{'{'}) {
		out = append(out, ',')
	}
	out = append(out, member(Update(0, out))...)
	return append(out, space...), nil
}

// member returns the member with a checksum, and the end of the object.
func member(crc uint32) string { return fmt.Sprintf(sealBegin+"%08x"+sealEnd, crc) }

// Verify reports whether raw has a checksum, and returns ErrDamaged if it does not match the other
// bytes. An object without a checksum, from before objects were sealed, is not checked.
func Verify(raw []byte) (present bool, err error) {
	object := bytes.TrimRight(raw, jsonSpace)
	if len(object) < sealBytes {
		return false, nil
	}
	body, seal := object[:len(object)-sealBytes], object[len(object)-sealBytes:]
	if !bytes.HasPrefix(seal, []byte(sealBegin)) || !bytes.HasSuffix(seal, []byte(sealEnd)) {
		return false, nil
	}
	stored := seal[len(sealBegin) : len(sealBegin)+8]
	if crc := Update(0, body); member(crc) != string(seal) {
		if _, err := hex.DecodeString(string(stored)); err != nil {
			stored = []byte("unreadable")
		}
		return true, fmt.Errorf("%w: %d bytes of JSON have CRC-32C %08x, the object has %s", ErrDamaged, len(body), crc, stored)
	}
	return true, nil
}
