package key

import (
	"fmt"
	"strings"

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
