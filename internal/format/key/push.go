package key

import (
	"fmt"
	"strings"
)

// pushIDLen is the length of the identifier of a group.
const pushIDLen = 32

// PushesPrefix returns the prefix of the states of a tenant's groups of pushed metrics.
func PushesPrefix(tenant string) string { return TenantPrefix(tenant) + "pushes/" }

// Push returns the key of the state of a group of pushed metrics. Its identifier has 32 lower-case
// hexadecimal digits.
func Push(tenant, id string) string { return PushesPrefix(tenant) + id + manifestExt }

// ParsePush is the inverse of Push.
func ParsePush(k string) (tenant, id string, err error) {
	p := strings.Split(k, "/")
	if len(p) != 4 || p[0] != Version || p[1] == "" || p[2] != "pushes" {
		return "", "", fmt.Errorf("parse push key %q: %w", k, ErrSyntax)
	}
	id, ok := strings.CutSuffix(p[3], manifestExt)
	if !ok || len(id) != pushIDLen || strings.Trim(id, "0123456789abcdef") != "" {
		return "", "", fmt.Errorf("parse push key %q: %w", k, ErrSyntax)
	}
	return p[1], id, nil
}
