// Package key is the grammar of object keys. Only this package builds and parses keys:
//
//	v1/<tenant>/segments/<window>/<ulid>.parquet        level 0: the samples of one flush in one
//	                                                    2h window
//	v1/<tenant>/segments/<window>/<ulid>-q.parquet      the same, from messages of the write queue
//	v1/<tenant>/blocks/<level>/<window>/<ulid>/<file>   a file of a block, which compaction made
//	                                                    of segments and other blocks
//	v1/<tenant>/manifest.json                           the live blocks, and the segments that
//	                                                    they consumed
//	v1/<tenant>/manifests/<ulid>.json                   a copy of an earlier manifest
//	v1/<tenant>/imports/<ulid>.json                     the record of an import
//	v1/<tenant>/uploads/<ulid>/<file>                   an uploaded block that waits for its
//	                                                    import, and the state of its upload
//	v1/<tenant>/pushes/<id>.json                        the state of a group of pushed metrics
//	v1/<tenant>/usage/queries.json                      the counts of what queries asked for
//	v1/<tenant>/dashboards/<name>.json                  a dashboard that the tenant saved
//	v1/<tenant>/answers/<hash>/<hash>.arrow             a kept answer to a slice of a range query
//	v1/<tenant>/iceberg/<table>/…                       the metadata of an Iceberg table
//	rules/<tenant>.json                                 the tenant's rule groups
//	store.json                                          the identity of the store
//
// <window> is the start of a window (2h, or that of the level) as YYYYMMDDTHHMMZ (UTC), so that
// keys sort by time within years 0000–9999. <ulid> (26 characters, Crockford base32) makes keys
// distinct. Its time is from a machine's clock and orders nothing. Only in a segment of the queue
// it is meaningful: the time at which the queue received the newest message of the segment.
package key

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

const (
	// Version is the first element of every key.
	Version = "v1"
	// WindowMillis is the length of a window in milliseconds (2h).
	WindowMillis int64 = 2 * 60 * 60 * 1000

	// MinTime and MaxTime bound the timestamps (ms since the Unix epoch) whose windows have a key:
	// years 0000 to 9999, UTC.
	MinTime int64 = -62167219200000
	MaxTime int64 = 253402300799999

	// Quarantine begins the keys of copies of damaged objects; the object's key follows. Nothing
	// deletes them.
	Quarantine = "quarantine/"

	// QueueMillis is the length of a period of the write queue in milliseconds. Periods begin at
	// multiples of it. By the queue's clock, all messages of a segment were sent in one period, so
	// that a deletion can apply to everything that was sent until the end of a period (package
	// catalog).
	QueueMillis int64 = 20 * 1000

	windowLayout = "20060102T1504Z"
	segmentExt   = ".parquet"
	// segmentsFolder follows the tenant in the keys of segments.
	segmentsFolder = "/segments/"
	queuedMark     = "-q"
)

// ErrSyntax reports a string that does not match the grammar.
var ErrSyntax = errors.New("not a promlake key")

// Window is the start of a 2h window, ms since the Unix epoch, a multiple of WindowMillis.
type Window int64

// WindowOf returns the window that contains the timestamp t (ms). t must be within [MinTime,
// MaxTime].
func WindowOf(t int64) Window {
	w := t / WindowMillis
	if t%WindowMillis < 0 {
		w--
	}
	return Window(w * WindowMillis)
}

// End returns the first timestamp (ms) after the window.
func (w Window) End() int64 { return int64(w) + WindowMillis }

// String formats w as in keys.
func (w Window) String() string { return time.UnixMilli(int64(w)).UTC().Format(windowLayout) }

// ParseWindow is the inverse of Window.String.
func ParseWindow(s string) (Window, error) {
	if len(s) != len(windowLayout) {
		return 0, fmt.Errorf("parse window %q: %w", s, ErrSyntax)
	}
	n := func(from, to int) (n int) {
		for _, c := range []byte(s[from:to]) {
			n = n*10 + int(c) - '0'
		}
		return n
	}
	// Whatever is no window becomes the time of another one, or none.
	w := Window(time.Date(n(0, 4), time.Month(n(4, 6)), n(6, 8), n(9, 11), n(11, 13), 0, 0, time.UTC).UnixMilli())
	if WindowOf(int64(w)) != w || w.String() != s {
		return 0, fmt.Errorf("parse window %q: %w", s, ErrSyntax)
	}
	return w, nil
}

// MarshalText implements encoding.TextMarshaler with the format of keys.
func (w Window) MarshalText() ([]byte, error) {
	s := w.String()
	if back, err := ParseWindow(s); err != nil || back != w {
		return nil, fmt.Errorf("marshal window %d: %w", int64(w), ErrSyntax)
	}
	return []byte(s), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *Window) UnmarshalText(b []byte) error {
	v, err := ParseWindow(string(b))
	if err == nil {
		*w = v
	}
	return err
}

// Segment names a segment.
type Segment struct {
	Tenant string
	Window Window
	ID     ulid.ULID
	Queued bool // from messages of the write queue
}

// TenantPrefix returns the prefix of all keys of a tenant.
func TenantPrefix(tenant string) string { return Version + "/" + tenant + "/" }

// SegmentsPrefix returns the prefix of all segments of a tenant.
func SegmentsPrefix(tenant string) string { return Version + "/" + tenant + segmentsFolder }

// QueriedTenant returns the tenant of a key that queries read first: that of a segment, or of a
// manifest. ok is false for other keys.
func QueriedTenant(k string) (tenant string, ok bool) {
	rest, found := strings.CutPrefix(k, Version+"/")
	tenant, rest, inTenant := strings.Cut(rest, "/")
	return tenant, found && inTenant && (rest == "manifest"+manifestExt || strings.HasPrefix("/"+rest, segmentsFolder))
}

// WindowPrefix returns the prefix of all segments in a tenant's window.
func WindowPrefix(tenant string, w Window) string { return SegmentsPrefix(tenant) + w.String() + "/" }

// String returns the key.
func (s Segment) String() string {
	return Version + "/" + s.Tenant + segmentsFolder + s.Window.String() + "/" + s.Name() + segmentExt
}

// Name returns the last element of the key without its extension.
func (s Segment) Name() string {
	if s.Queued {
		return s.ID.String() + queuedMark
	}
	return s.ID.String()
}

// ParseSegment is the inverse of Segment.String.
func ParseSegment(k string) (Segment, error) {
	rest, ok := strings.CutPrefix(k, Version+"/")
	tenant, rest, found := strings.Cut(rest, segmentsFolder)
	window, name, inWindow := strings.Cut(rest, "/")
	name, isSegment := strings.CutSuffix(name, segmentExt)
	if !ok || !found || !inWindow || !isSegment || tenant == "" || strings.Contains(tenant, "/") {
		return Segment{}, fmt.Errorf("parse segment key %q: %w", k, ErrSyntax)
	}
	w, err := ParseWindow(window)
	if err != nil {
		return Segment{}, fmt.Errorf("parse segment key %q: %w", k, err)
	}
	name, queued := strings.CutSuffix(name, queuedMark)
	id, err := parseID(name)
	if err != nil {
		return Segment{}, fmt.Errorf("parse segment key %q: %w", k, err)
	}
	return Segment{Tenant: tenant, Window: w, ID: id, Queued: queued}, nil
}
