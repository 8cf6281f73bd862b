// Package tenant validates tenant names and stores the tenant of a request in its context.
package tenant

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const (
	// Header is the HTTP header that names the tenant (Mimir's and Cortex's).
	Header = "X-Scope-OrgID"
	// Default is the tenant of requests without the header.
	Default = "anonymous"
	// MaxLen is the maximum length of a tenant name in bytes.
	MaxLen = 150
)

type ctxKey struct{}

// With returns a ctx with the tenant id.
func With(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, ctxKey{}, id)
}

// From returns the tenant of ctx, or Default.
func From(ctx context.Context) string {
	if id, ok := ctx.Value(ctxKey{}).(string); ok {
		return id
	}
	return Default
}

// Parse validates the value of a tenant header and returns the tenant; "" is Default. The rules are
// Mimir's: at most MaxLen bytes of letters, digits and !-_.*'() ; not "." or "..".
func Parse(v string) (string, error) {
	if v == "" {
		return Default, nil
	}
	if len(v) > MaxLen {
		return "", fmt.Errorf("tenant ID is too long: max %d characters", MaxLen)
	}
	if v == "." || v == ".." {
		return "", fmt.Errorf("tenant ID is %q, which is not allowed", v)
	}
	for _, r := range v {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!-_.*'()", r)) {
			return "", fmt.Errorf("tenant ID %q contains unsupported character %q", v, r)
		}
	}
	return v, nil
}

const (
	// Label is the label by which the series of several tenants differ, as in Mimir.
	Label = "__tenant_id__"
	// Separator stands between the tenants of a request that reads from several, as in Mimir.
	Separator = "|"
)

// Several reports whether ctx has several tenants.
func Several(ctx context.Context) bool { return strings.Contains(From(ctx), Separator) }

// All returns the tenants of ctx, sorted.
func All(ctx context.Context) []string { return strings.Split(From(ctx), Separator) }

// ParseAll is Parse for a value that may have several tenants, a|b. It returns them sorted, each
// once, for With.
func ParseAll(v string) (string, error) {
	all := strings.Split(v, Separator)
	for i, one := range all {
		if one == "" && len(all) > 1 {
			return "", fmt.Errorf("tenant IDs %q: one of them is empty", v)
		}
		id, err := Parse(one)
		if err != nil {
			return "", err
		}
		all[i] = id
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), Separator), nil
}

// AllFromRequest is FromRequest for a request that may name several tenants.
func AllFromRequest(r *http.Request) (string, error) { return fromRequest(r, ParseAll) }

// FromRequest returns the tenant in r's Header, or Default if there is none. A request with several
// such headers is an error: a proxy's header cannot be distinguished from the client's.
func FromRequest(r *http.Request) (string, error) { return fromRequest(r, Parse) }

func fromRequest(r *http.Request, parse func(string) (string, error)) (string, error) {
	switch values := r.Header.Values(Header); len(values) {
	case 0:
		return Default, nil
	case 1:
		return parse(values[0])
	default:
		return "", fmt.Errorf("request carries %d %s headers, at most 1 is allowed", len(values), Header)
	}
}
