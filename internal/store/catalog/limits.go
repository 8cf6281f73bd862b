package catalog

import (
	"errors"
	"fmt"
)

// Limits of deletions. Every query reads all tombstones and compares their matchers with the series
// that it finds, so what they may hold is bounded.
const (
	// MaxTombstones bounds the tombstones of a manifest. Compaction applies and drops them.
	MaxTombstones = 4096
	// MaxMatcherBytes bounds the names and values of the matchers of one tombstone.
	MaxMatcherBytes = 64 << 10
	// MaxTombstoneBytes bounds the names and values of the matchers of all tombstones of a
	// manifest.
	MaxTombstoneBytes = 1 << 20
	// MaxSealed bounds the segments that a manifest has as sealed. Compaction takes them away.
	MaxSealed = 1 << 16
)

// ErrFull: the manifest has no room for another tombstone. Compaction makes some by applying those
// that are there.
var ErrFull = errors.New("no room for another deletion until compaction has applied earlier ones")

// LimitError is a deletion that exceeds a limit. It wraps ErrInvalid if no manifest could take the
// deletion, and ErrFull if this one cannot take it now.
type LimitError struct {
	Limit    string // "tombstones", "tombstone_bytes", "matcher_bytes" or "sealed"
	Got, Max int
	cause    error
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("delete: %d %s, the limit is %d: %v", e.Got, limitNouns[e.Limit], e.Max, e.cause)
}

// Unwrap returns ErrInvalid or ErrFull.
func (e *LimitError) Unwrap() error { return e.cause }

var limitNouns = map[string]string{
	"tombstones":      "deletions in the manifest",
	"tombstone_bytes": "bytes of matchers in the manifest's deletions",
	"matcher_bytes":   "bytes of matchers in one deletion",
	"sealed":          "segments that wait for compaction and for a deletion",
}

// admits checks that the manifest has room for t. Limits do not concern the tombstones that a
// manifest already has: one from before the limits stays readable.
func (m Manifest) admits(t Tombstone) error {
	size := t.matcherBytes()
	if size > MaxMatcherBytes {
		return &LimitError{"matcher_bytes", size, MaxMatcherBytes, ErrInvalid}
	}
	if n := len(m.Tombstones) + 1; n > MaxTombstones {
		return &LimitError{"tombstones", n, MaxTombstones, ErrFull}
	}
	for _, other := range m.Tombstones {
		size += other.matcherBytes()
	}
	if size > MaxTombstoneBytes {
		return &LimitError{"tombstone_bytes", size, MaxTombstoneBytes, ErrFull}
	}
	return nil
}

// matcherBytes is the size of the names and values of t's matchers.
func (t Tombstone) matcherBytes() (n int) {
	for _, m := range t.Matchers {
		n += len(m.Name) + len(m.Value)
	}
	return n
}
