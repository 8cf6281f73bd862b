package key

import (
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

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
