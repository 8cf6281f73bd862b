package objstore

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidKey returns an error that wraps ErrInvalidKey unless every implementation can store key.
// Valid keys have 1 to MaxKeyLen bytes of UTF-8 without control characters, and consist of elements
// of 1 to MaxElementLen bytes between slashes. No element is "." or "..", and the first one does
// not begin with a dot, because a directory store keeps its own files under such names.
func ValidKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrInvalidKey)
	case len(key) > MaxKeyLen:
		return fmt.Errorf("%w: %.64q… has %d bytes, the limit is %d", ErrInvalidKey, key, len(key), MaxKeyLen)
	case key[0] == '/':
		return fmt.Errorf("%w: %q is absolute", ErrInvalidKey, key)
	case key[0] == '.':
		return fmt.Errorf("%w: %q begins with a dot", ErrInvalidKey, key)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %q is not UTF-8", ErrInvalidKey, key)
	case strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r == 0x7f || r == 0xfffe || r == 0xffff }):
		// XML 1.0 listings or URLs cannot represent it safely.
		return fmt.Errorf("%w: %q contains a control character", ErrInvalidKey, key)
	}
	for e := range strings.SplitSeq(key, "/") {
		if e == "" || e == "." || e == ".." {
			return fmt.Errorf("%w: %q contains the element %q", ErrInvalidKey, key, e)
		}
		if len(e) > MaxElementLen {
			return fmt.Errorf("%w: %.64q… contains an element of %d bytes, the limit is %d", ErrInvalidKey, key, len(e), MaxElementLen)
		}
	}
	return nil
}
