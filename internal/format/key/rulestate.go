package key

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// RuleStatesPrefix is the prefix of the states of all rule groups.
const RuleStatesPrefix = "rules-state/"

// stateIDBytes is the length of the hash that names a state.
const stateIDBytes = 16

// RuleState returns the key of the state of a rule group of a tenant, a mutable object. It is named
// by a hash, because names of namespaces and groups may have any characters and lengths.
func RuleState(tenant, namespace, group string) string {
	// The length of the first name keeps pairs apart whose names are the same text together.
	hash := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(namespace), namespace, group))
	return RuleStatesPrefix + tenant + "/" + hex.EncodeToString(hash[:stateIDBytes]) + manifestExt
}

// RuleStatesOf returns the prefix of the states of a tenant's rule groups.
func RuleStatesOf(tenant string) string { return RuleStatesPrefix + tenant + "/" }

// ParseRuleState returns the tenant and the hash of a key that RuleState has made.
func ParseRuleState(k string) (tenant, hash string, err error) {
	rest, ok := strings.CutPrefix(k, RuleStatesPrefix)
	tenant, name, is := strings.Cut(rest, "/")
	hash, json := strings.CutSuffix(name, manifestExt)
	raw, bad := hex.DecodeString(hash)
	if !ok || !is || !json || tenant == "" || bad != nil || len(raw) != stateIDBytes || strings.ToLower(hash) != hash {
		return "", "", fmt.Errorf("parse rule state key %q: %w", k, ErrSyntax)
	}
	return tenant, hash, nil
}
