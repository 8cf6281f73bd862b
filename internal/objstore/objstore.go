// Package objstore is Promlake's only state: a flat map from keys to immutable or
// compare-and-swapped byte strings.
//
// The interface is the common denominator of S3 (with conditional writes), a local directory and an
// in-memory fake. One conformance suite (package storetest) runs over all three. Formats and
// protocols above it rely on exactly the guarantees stated here and on nothing else:
//
//   - Durable: when Put or Delete returns nil, the effect survives a crash of this process and of the machine.
//   - Atomic: a reader sees either the whole old object or the whole new one, never a part.
//   - Strong: a Get, List or conditional Put that starts after a Put or Delete returned sees its effect.
//   - Ambiguous failures are possible: an error that is none of the sentinels below may hide a write that took effect.
package objstore

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Sentinel errors. Implementations wrap them with %w and the key.
var (
	// ErrNotFound: the key does not exist.
	ErrNotFound = errors.New("object not found")
	// ErrPrecondition: an IfAbsent or IfMatch condition did not hold; the object was left as it
	// was.
	ErrPrecondition = errors.New("precondition failed")
	// ErrRange: the asked range begins at or beyond the object's end.
	ErrRange = errors.New("range not satisfiable")
	// ErrInvalidKey: the key is none that every implementation can hold; ValidKey says which those
	// are.
	ErrInvalidKey = errors.New("invalid key")
)

const (
	// MaxKeyLen is the longest key in bytes (S3's limit).
	MaxKeyLen = 1024
	// MaxElementLen is the longest element of a key, the text between two slashes, in bytes (the
	// limit of file systems).
	MaxElementLen = 255
)

// Object describes a stored object.
type Object struct {
	Key  string
	Size int64  // bytes
	ETag string // opaque; equal ETags of one key mean equal bytes
	// Modified is when the object was put, by the store's clock. Of two Puts, of which one returned
	// before the other began, the later one's is never the earlier. S3 counts in seconds.
	Modified time.Time
}

// Condition guards a Put. The zero value is unconditional. With both fields set the condition never
// holds.
type Condition struct {
	IfAbsent bool   // write only if the key does not exist (If-None-Match: *)
	IfMatch  string // write only if the key exists and its ETag is this one (If-Match)
}

// ClockLag is how far Store.Now may be behind the store's clock. An answer over HTTP has the time
// in whole seconds, and servers may look at their clock once a second.
const ClockLag = 3 * time.Second

// Store is an object store. All methods are safe for concurrent use and honour ctx.
type Store interface {
	// Get opens length bytes of an object from offset. A negative length means "to the end"; a
	// negative offset means the last -offset bytes (a suffix range, clipped to the object), of
	// which length counts from the first. A range that reaches past the end is clipped. An empty
	// object has no range but the whole (offset 0, negative length) and suffixes. The returned
	// Object carries the full size. Errors: ErrNotFound, ErrRange. A reader that fails midway
	// returns the failure, never a short EOF. The caller closes the reader.
	Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, Object, error)
	// Put writes the whole of body (from its current position) under key and returns the new ETag.
	// Errors: ErrPrecondition, also for IfMatch on an absent key. Implementations retry transient
	// failures by rewinding body.
	Put(ctx context.Context, key string, body io.ReadSeeker, cond Condition) (etag string, err error)
	// List yields the objects whose keys begin with prefix and sort after startAfter (bytewise), in
	// ascending key order. It stops at the first error, which it yields. Any prefix is legal, also
	// one that ends inside an element.
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error]
	// Delete removes key. Deleting an absent key is not an error.
	Delete(ctx context.Context, key string) error
	// Now returns a time that the store's clock, by which Modified is set, has reached. It is at
	// most ClockLag behind. No object gets an earlier Modified whose Put begins after Now returned.
	Now(ctx context.Context) (time.Time, error)
}

// Lister is the part of Store that finds objects.
type Lister interface {
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[Object, error]
}

// Local is implemented by stores whose objects are files that a reader in this process may open in
// place.
type Local interface {
	// LocalPath returns the absolute path of the file that holds key (which may not exist; that of
	// an invalid key never does). The file is to be read only.
	LocalPath(key string) string
}
