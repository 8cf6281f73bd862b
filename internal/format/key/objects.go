package key

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
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
	return parseObject("manifest", "manifests", k)
}

// parseObject parses the key of an object in a folder of a tenant, which has an ID as its name.
// kind is what the error calls it.
func parseObject(kind, folder, k string) (tenant string, id ulid.ULID, err error) {
	tenant, name, ok := cutObject(folder, k)
	if err = ErrSyntax; ok {
		id, err = parseID(name)
	}
	if err != nil {
		return "", ulid.ULID{}, fmt.Errorf("parse %s key %q: %w", kind, k, err)
	}
	return tenant, id, nil
}

// cutObject divides the key of an object in a folder of a tenant into the tenant and the object's
// name, without its extension.
func cutObject(folder, k string) (tenant, name string, ok bool) {
	p := strings.Split(k, "/")
	if len(p) != 4 || p[0] != Version || p[1] == "" || p[2] != folder {
		return "", "", false
	}
	name, ok = strings.CutSuffix(p[3], manifestExt)
	return p[1], name, ok
}

// Identity is the key of the object that tells a store from all others. It is written once.
const Identity = "store.json"

// Usage returns the key of the counts of a tenant's queries.
func Usage(tenant string) string { return TenantPrefix(tenant) + "usage/queries.json" }

// AnswersPrefix returns the prefix of the kept answers of a tenant.
func AnswersPrefix(tenant string) string { return TenantPrefix(tenant) + "answers/" }

// answerExt ends the keys of kept answers.
const answerExt = ".arrow"

// Answer is a kept answer to a slice of a range query.
type Answer struct {
	Tenant   string
	Question string // a hash of what all slices of such queries have in common
	Slice    string // a hash of the steps and of the objects that they read
}

// Prefix returns the prefix of all answers to the question.
func (a Answer) Prefix() string { return AnswersPrefix(a.Tenant) + a.Question + "/" }

// String returns the key.
func (a Answer) String() string { return a.Prefix() + a.Slice + answerExt }

// ParseAnswer is the inverse of Answer.String.
func ParseAnswer(k string) (a Answer, err error) {
	if p := strings.Split(k, "/"); len(p) == 5 {
		a = Answer{p[1], p[3], strings.TrimSuffix(p[4], answerExt)}
	}
	hash := func(s string) bool { return len(s) == hashLen && strings.Trim(s, "0123456789abcdef") == "" }
	if a.Tenant == "" || !hash(a.Question) || !hash(a.Slice) || a.String() != k {
		return Answer{}, fmt.Errorf("parse answer key %q: %w", k, ErrSyntax)
	}
	return a, nil
}

// IcebergPrefix returns the prefix of the objects of a tenant's Iceberg table. The table's metadata
// is below metadata/ there; its data are the files of blocks.
func IcebergPrefix(tenant, table string) string {
	return TenantPrefix(tenant) + "iceberg/" + table + "/"
}

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

// hashLen is the length of the identifier of a group, and of the hashes of an answer: lower-case
// hexadecimal digits.
const hashLen = 32

// PushesPrefix returns the prefix of the states of a tenant's groups of pushed metrics.
func PushesPrefix(tenant string) string { return TenantPrefix(tenant) + "pushes/" }

// Push returns the key of the state of a group of pushed metrics. Its identifier has 32 lower-case
// hexadecimal digits.
func Push(tenant, id string) string { return PushesPrefix(tenant) + id + manifestExt }

// ParsePush is the inverse of Push.
func ParsePush(k string) (tenant, id string, err error) {
	tenant, id, ok := cutObject("pushes", k)
	if !ok || len(id) != hashLen || strings.Trim(id, "0123456789abcdef") != "" {
		return "", "", fmt.Errorf("parse push key %q: %w", k, ErrSyntax)
	}
	return tenant, id, nil
}

// DashboardsPrefix returns the prefix of the dashboards that a tenant saved.
func DashboardsPrefix(tenant string) string { return TenantPrefix(tenant) + "dashboards/" }

// Dashboard returns the key of a dashboard that a tenant saved, a mutable object. Its name may be
// any text; three times its bytes and manifestExt must fit into an element of a key.
func Dashboard(tenant, name string) string {
	return DashboardsPrefix(tenant) + url.PathEscape(name) + manifestExt
}

// ParseDashboard is the inverse of Dashboard.
func ParseDashboard(k string) (tenant, name string, err error) {
	tenant, escaped, ok := cutObject("dashboards", k)
	if name, err = url.PathUnescape(escaped); !ok || err != nil || name == "" || Dashboard(tenant, name) != k {
		return "", "", fmt.Errorf("parse dashboard key %q: %w", k, ErrSyntax)
	}
	return tenant, name, nil
}

// ImportsPrefix returns the prefix of the records of a tenant's imports.
func ImportsPrefix(tenant string) string { return TenantPrefix(tenant) + "imports/" }

// Import returns the key of the record of an import, which has the identifier of its block.
func Import(tenant string, id ulid.ULID) string {
	return ImportsPrefix(tenant) + id.String() + manifestExt
}

// ParseImport is the inverse of Import.
func ParseImport(k string) (tenant string, id ulid.ULID, err error) {
	return parseObject("import", "imports", k)
}
