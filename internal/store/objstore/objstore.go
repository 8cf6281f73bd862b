// Package objstore is Promlake's only state: a flat map from keys to immutable or
// compare-and-swapped byte strings.
//
// The interface is the common denominator of the object stores of clouds (with conditional writes),
// a local directory and an in-memory fake. One conformance suite (package storetest) tests them
// all. Formats and protocols rely only on the guarantees stated here:
//
//   - Durable: when Put or Delete returns nil, the effect survives a crash of the process or the
//     machine.
//   - Atomic: a reader sees the whole old object or the whole new one, never a part.
//   - Strong: a Get, List or conditional Put that starts after a Put or Delete returned sees its
//     effect.
//   - Ambiguous failures are possible: an error that is none of the sentinels below may hide a
//     write that took effect.
package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	smithytime "github.com/aws/smithy-go/time"
)

// Sentinel errors. Implementations wrap them with %w and the key.
var (
	// ErrNotFound: the key does not exist.
	ErrNotFound = errors.New("object not found")
	// ErrPrecondition: an IfAbsent or IfMatch condition did not hold; the object is unchanged.
	ErrPrecondition = errors.New("precondition failed")
	// ErrRange: the requested range begins at or after the object's end.
	ErrRange = errors.New("range not satisfiable")
	// ErrReadOnly: the store takes no writes at present, for example because its disk is full. The
	// same write may succeed later.
	ErrReadOnly = errors.New("the store takes no writes at present")
	// ErrInvalidKey: ValidKey rejects the key, because not every implementation can store it.
	ErrInvalidKey = errors.New("invalid key")
)

const (
	// MaxKeyLen is the maximum length of a key in bytes (S3's limit).
	MaxKeyLen = 1024
	// MaxElementLen is the maximum length of an element of a key, the text between two slashes, in
	// bytes (the limit of file systems).
	MaxElementLen = 255
)

// Object describes a stored object.
type Object struct {
	Key  string
	Size int64  // bytes
	ETag string // opaque; equal ETags of a key mean equal bytes
	// Modified is the time of the Put by the store's clock. If one Put returned before another
	// began, its time is not later. S3 has a resolution of one second.
	Modified time.Time
}

// Condition makes a Put conditional. The zero value is unconditional. If both fields are set, the
// condition never holds.
type Condition struct {
	IfAbsent bool   // write only if the key does not exist (If-None-Match: *)
	IfMatch  string // write only if the key exists with this ETag (If-Match)
}

// ClockLag bounds how far Store.Now may be behind the store's clock: HTTP answers have the time in
// whole seconds, and servers may read their clock once per second.
const ClockLag = 3 * time.Second

// Store is an object store. All methods are safe for concurrent use and return early with an error
// when ctx ends.
type Store interface {
	// Get opens length bytes of an object from offset. A negative length means to the end. A
	// negative offset means the last -offset bytes (a suffix range, clipped to the object), and
	// length counts from the first of them. A range that reaches past the end is clipped. The only
	// valid ranges of an empty object are the whole object (offset 0, negative length) and
	// suffixes. The returned Object has the full size. Errors: ErrNotFound, ErrRange. A reader that
	// fails midway returns an error, never a premature EOF. The caller must close the reader.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Object, error)
	// Put writes body, from its current position to its end, under key and returns the new ETag.
	// Errors: ErrPrecondition, also for IfMatch on an absent key. Implementations retry transient
	// failures by rewinding body.
	Put(ctx context.Context, key string, body io.ReadSeeker, cond Condition) (etag string, err error)
	// List yields the objects whose keys begin with prefix and sort after startAfter (bytewise), in
	// ascending order of keys. It stops at the first error, which it yields. Any prefix is valid,
	// also one that ends inside an element.
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error]
	FolderLister
	// Delete removes key. Deleting an absent key is not an error.
	Delete(ctx context.Context, key string) error
	// Now returns a time that the store's clock, which sets Modified, has reached. It is at most
	// ClockLag behind that clock. An object whose Put begins after Now returned does not get an
	// earlier Modified.
	Now(ctx context.Context) (time.Time, error)
}

// Lister is the part of Store that lists objects.
type Lister interface {
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error]
}

// FolderLister is the part of Store that lists folders.
type FolderLister interface {
	// ListFolders yields, in ascending order, the folders directly below prefix: for the keys
	// v1/a/x, v1/a/y and v1/b, and the prefix v1/, it yields v1/a/. prefix is "" or ends with a
	// slash. The listing is as strongly consistent as List. It stops at the first error, which it
	// yields.
	ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// Local is implemented by stores whose objects are files that other code of the process may open.
type Local interface {
	// LocalPath returns the absolute path of key's file, which may not exist; for an invalid key it
	// never exists. Callers must not write to the file.
	LocalPath(key string) string
}

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

// Span resolves the offset and length of a Get for an object of size bytes to n bytes from start,
// clipped to the object. Errors: ErrRange.
func Span(offset, length, size int64) (start, n int64, err error) {
	switch {
	case offset < 0:
		start = max(0, size+offset)
	case offset < size, offset == 0 && length < 0:
		start = offset
	default:
		return 0, 0, fmt.Errorf("%w: offset %d of %d bytes", ErrRange, offset, size)
	}
	n = size - start
	if length >= 0 {
		n = min(n, length)
	}
	return start, n, nil
}

const (
	firstWait = 20 * time.Millisecond
	longWait  = 2 * time.Second
)

// AfterRace sleeps before the n-th attempt after the first of a compare-and-swap that others
// preceded, for a random time that grows with n. It fails if ctx ends.
func AfterRace(ctx context.Context, n int) error {
	return smithytime.SleepWithContext(ctx, rand.N(min(longWait, firstWait<<min(n, 10))))
}
