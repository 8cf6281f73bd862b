// Package checksumtest tests that readers detect damaged bytes.
package checksumtest

import (
	"errors"
	"slices"
	"testing"
)

// OneBit returns the mask of a sweep that changes one bit of each byte.
func OneBit(at int) []byte { return []byte{1 << (at % 8)} }

// OneAndAllBits returns the masks of a sweep that changes one bit, then all bits, of each byte.
func OneAndAllBits(at int) []byte { return []byte{1 << (at % 8), 0xff} }

// Sweep changes every byte of file in place, by each mask in turn, and restores it. After each
// change read must return the same text as before, or an error that is one of those allowed.
func Sweep(t *testing.T, name string, file []byte, masks func(at int) []byte, read func() (string, error), allowed ...error) {
	t.Helper()
	want, err := read()
	if err != nil {
		t.Fatalf("%s: read the unchanged file: %v", name, err)
	}
	made, found := 0, 0
	for at, b := range file {
		for _, mask := range masks(at) {
			file[at] = b ^ mask
			made++
			got, err := read()
			switch {
			case err == nil && got != want:
				t.Fatalf("%s: byte %d of %d, mask %#x: another answer without an error", name, at, len(file), mask)
			case err != nil && !slices.ContainsFunc(allowed, func(e error) bool { return errors.Is(err, e) }):
				t.Fatalf("%s: byte %d of %d, mask %#x: unexpected error: %v", name, at, len(file), mask, err)
			case err != nil:
				found++
			}
		}
		file[at] = b
	}
	t.Logf("%s: %d of %d changes are errors", name, found, made)
}
