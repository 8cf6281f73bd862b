package key

import (
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// Block names a block: the prefix of its files.
type Block struct {
	Tenant string
	Level  Level
	Window Window // a window of the level
	ID     ulid.ULID
}

// BlocksPrefix returns the prefix of all blocks of a tenant.
func BlocksPrefix(tenant string) string { return TenantPrefix(tenant) + "blocks/" }

// Prefix returns the prefix of the block's files.
func (b Block) Prefix() string {
	return BlocksPrefix(b.Tenant) + b.Level.String() + "/" + b.Window.String() + "/" + b.ID.String() + "/"
}

// File returns the key of a file of the block. name has 1 to 64 lower-case letters, digits, dots
// and hyphens, and starts with a letter.
func (b Block) File(name string) string { return b.Prefix() + name }

// String returns the block's prefix without the tenant and the trailing slash, for logs and plans.
func (b Block) String() string {
	return b.Level.String() + "/" + b.Window.String() + "/" + b.ID.String()
}

// ParseBlockFile is the inverse of Block.File.
func ParseBlockFile(k string) (Block, string, error) {
	p := strings.Split(k, "/")
	if len(p) != 7 || p[0] != Version || p[1] == "" || p[2] != "blocks" || !isFileName(p[6]) {
		return Block{}, "", fmt.Errorf("parse block key %q: %w", k, ErrSyntax)
	}
	b := Block{Tenant: p[1]}
	var err error
	if b.Level, err = ParseLevel(p[3]); err == nil {
		b.Window, err = ParseWindow(p[4])
	}
	if err == nil && b.Level.WindowOf(int64(b.Window)) != b.Window {
		err = fmt.Errorf("%s is not a window of level %s: %w", b.Window, b.Level, ErrSyntax)
	}
	if err == nil {
		b.ID, err = parseID(p[5])
	}
	if err != nil {
		return Block{}, "", fmt.Errorf("parse block key %q: %w", k, err)
	}
	return b, p[6], nil
}

const maxFileName = 64

func isFileName(s string) bool {
	if s == "" || len(s) > maxFileName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-') {
			return false
		}
	}
	return true
}

// parseID parses a ULID in the spelling of ULID.String.
func parseID(s string) (ulid.ULID, error) {
	id, err := ulid.ParseStrict(s)
	if err != nil || id.String() != s {
		return ulid.ULID{}, fmt.Errorf("parse ulid %q: %w", s, ErrSyntax)
	}
	return id, nil
}

// UploadState is the file of an upload that has its state. The others are those of the block.
const UploadState = "upload.json"

// Upload names an upload: a block of Prometheus whose files are put into the store before they are
// imported.
type Upload struct {
	Tenant string
	ID     ulid.ULID // of the block
}

// UploadsPrefix returns the prefix of all uploads of a tenant.
func UploadsPrefix(tenant string) string { return TenantPrefix(tenant) + "uploads/" }

// Prefix returns the prefix of the upload's files.
func (u Upload) Prefix() string { return UploadsPrefix(u.Tenant) + u.ID.String() + "/" }

// File returns the key of a file for which IsUploadFile holds, or of UploadState.
func (u Upload) File(name string) string { return u.Prefix() + name }

// ParseUploadFile is the inverse of Upload.File.
func ParseUploadFile(k string) (Upload, string, error) {
	p := strings.SplitN(k, "/", 5)
	if len(p) != 5 || p[0] != Version || p[1] == "" || p[2] != "uploads" || p[4] != UploadState && !IsUploadFile(p[4]) {
		return Upload{}, "", fmt.Errorf("parse upload key %q: %w", k, ErrSyntax)
	}
	id, err := parseID(p[3])
	if err != nil {
		return Upload{}, "", fmt.Errorf("parse upload key %q: %w", k, err)
	}
	return Upload{Tenant: p[1], ID: id}, p[4], nil
}

// chunkDigits is the length of the name of a file with chunks.
const chunkDigits = 6

// IsUploadFile reports whether a block may have a file of this name: index, tombstones, or chunks/
// and six digits.
func IsUploadFile(name string) bool {
	if name == "index" || name == "tombstones" {
		return true
	}
	number, ok := strings.CutPrefix(name, "chunks/")
	return ok && len(number) == chunkDigits && strings.Trim(number, "0123456789") == ""
}

// Level is the range of time that a block covers. The zero value is Part.
type Level uint8

// The levels, in order of the lifetime of their blocks. A part holds some of the samples of a 2h
// window; a block of another level holds the samples of its window that had settled when it was
// made.
const (
	Part Level = iota
	L2h
	L12h
	L24h
)

// Levels lists all levels in ascending order.
var Levels = []Level{Part, L2h, L12h, L24h}

var levelNames = [...]string{Part: "part", L2h: "2h", L12h: "12h", L24h: "24h"}

// String formats the level as in keys.
func (l Level) String() string {
	if int(l) >= len(levelNames) {
		return fmt.Sprintf("level(%d)", uint8(l))
	}
	return levelNames[l]
}

// ParseLevel is the inverse of Level.String.
func ParseLevel(s string) (Level, error) {
	for _, l := range Levels {
		if levelNames[l] == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("parse level %q: %w", s, ErrSyntax)
}

// Millis returns the length of the level's windows in ms.
func (l Level) Millis() int64 {
	switch l {
	case L12h:
		return 12 * time.Hour.Milliseconds()
	case L24h:
		return 24 * time.Hour.Milliseconds()
	default:
		return WindowMillis
	}
}

// WindowOf returns the start of the level's window that contains the timestamp t (ms, within
// [MinTime, MaxTime]): the largest multiple of Millis that is not greater than t.
func (l Level) WindowOf(t int64) Window {
	n := t / l.Millis()
	if t%l.Millis() < 0 {
		n--
	}
	return Window(n * l.Millis())
}

// End returns the first timestamp (ms) after the level's window w.
func (l Level) End(w Window) int64 { return int64(w) + l.Millis() }

// MarshalText implements encoding.TextMarshaler with the name of the level.
func (l Level) MarshalText() ([]byte, error) {
	if int(l) >= len(levelNames) {
		return nil, fmt.Errorf("marshal %s: %w", l, ErrSyntax)
	}
	return []byte(levelNames[l]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(b []byte) error {
	v, err := ParseLevel(string(b))
	if err == nil {
		*l = v
	}
	return err
}
