package key

import (
	"fmt"
	"strings"
)

// RulesPrefix is the prefix of the rules of all tenants. They lie beside the tenants' data, so that
// one listing shows whose rules have changed.
const RulesPrefix = "rules/"

// Rules returns the key of the rules of a tenant, a mutable object.
func Rules(tenant string) string { return RulesPrefix + tenant + manifestExt }

// ParseRules is the inverse of Rules.
func ParseRules(k string) (tenant string, err error) {
	rest, ok := strings.CutPrefix(k, RulesPrefix)
	tenant, is := strings.CutSuffix(rest, manifestExt)
	if !ok || !is || tenant == "" || strings.Contains(tenant, "/") {
		return "", fmt.Errorf("parse rules key %q: %w", k, ErrSyntax)
	}
	return tenant, nil
}
