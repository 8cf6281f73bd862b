package key

import (
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

// ImportsPrefix returns the prefix of the records of a tenant's imports.
func ImportsPrefix(tenant string) string { return TenantPrefix(tenant) + "imports/" }

// Import returns the key of the record of an import, which has the identifier of its block.
func Import(tenant string, id ulid.ULID) string {
	return ImportsPrefix(tenant) + id.String() + manifestExt
}

// ParseImport is the inverse of Import.
func ParseImport(k string) (tenant string, id ulid.ULID, err error) {
	p := strings.Split(k, "/")
	if len(p) != 4 || p[0] != Version || p[1] == "" || p[2] != "imports" {
		return "", ulid.ULID{}, fmt.Errorf("parse import key %q: %w", k, ErrSyntax)
	}
	name, ok := strings.CutSuffix(p[3], manifestExt)
	if !ok {
		return "", ulid.ULID{}, fmt.Errorf("parse import key %q: %w", k, ErrSyntax)
	}
	id, err = parseID(name)
	if err != nil {
		return "", ulid.ULID{}, fmt.Errorf("parse import key %q: %w", k, err)
	}
	return p[1], id, nil
}
