package key

import (
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

const manifestExt = ".json"

// Manifest returns the key of a tenant's manifest, its only mutable object.
func Manifest(tenant string) string { return TenantPrefix(tenant) + "manifest" + manifestExt }

// ManifestsPrefix returns the prefix of the copies of a tenant's earlier manifests.
func ManifestsPrefix(tenant string) string { return TenantPrefix(tenant) + "manifests/" }

// ManifestCopy returns the key of the copy of the manifest with an ID.
func ManifestCopy(tenant string, id ulid.ULID) string {
	return ManifestsPrefix(tenant) + id.String() + manifestExt
}

// ParseManifestCopy is the inverse of ManifestCopy.
func ParseManifestCopy(k string) (tenant string, id ulid.ULID, err error) {
	p := strings.Split(k, "/")
	if len(p) != 4 || p[0] != Version || p[1] == "" || p[2] != "manifests" {
		return "", ulid.ULID{}, fmt.Errorf("parse manifest key %q: %w", k, ErrSyntax)
	}
	name, ok := strings.CutSuffix(p[3], manifestExt)
	if !ok {
		return "", ulid.ULID{}, fmt.Errorf("parse manifest key %q: %w", k, ErrSyntax)
	}
	id, err = parseID(name)
	if err != nil {
		return "", ulid.ULID{}, fmt.Errorf("parse manifest key %q: %w", k, err)
	}
	return p[1], id, nil
}
