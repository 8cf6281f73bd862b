// Package auth authenticates and authorizes requests: a request has a bearer token or, in a
// function, a principal that AWS has identified, and a document lists the tenants and kinds of
// access of each. The document contains hashes of tokens, not the tokens.
package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/telemetry"
)

// Guard authenticates and authorizes requests before the handlers of a process. A nil Guard accepts
// all requests. It is safe for concurrent use.
type Guard struct {
	keys     keys
	own      string // sum of the process's own token
	ownToken string
	requests *prometheus.CounterVec
}

// New returns the guard of s, or nil if requests need no token. It reads a file now, and fails if
// the file is invalid; a remote document is read at the first request. It counts in reg:
//
//	promlake_auth_requests_total{result}   ok, absent, malformed, unknown, access, tenant,
//	                                       unavailable
func New(s Settings, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) (*Guard, error) {
	if !s.Enabled() {
		return nil, nil
	}
	from, err := OpenSecret(s.Tokens)
	if err != nil {
		return nil, err
	}
	requests := telemetry.Metrics{Registerer: reg, Prefix: "promlake_"}.Counters("auth_requests_total", "Requests to protected handlers by the result of authorization: ok, absent, malformed, unknown, access and tenant (not allowed by the token), unavailable (no document of tokens could be read).", "result")
	file, ok := from.(SecretFile)
	if !ok {
		return newGuard(newRemoteKeys(from, logger, now), requests), nil
	}
	k, err := newFileKeys(file, logger)
	if err != nil {
		return nil, err
	}
	return newGuard(k, requests), nil
}

func newGuard(k keys, requests *prometheus.CounterVec) *Guard {
	own := NewToken()
	return &Guard{keys: k, own: SumOf(own), ownToken: own, requests: requests}
}

// OwnToken returns a token that only this process knows and that allows everything, for its
// requests to itself. It is "" if requests need no token.
func (g *Guard) OwnToken() string {
	if g == nil {
		return ""
	}
	return g.ownToken
}

// Protect returns a handler that passes requests to next if their token or principal allows the
// access to their tenant. Such a request reaches next without its Authorization header and with
// exactly one tenant header. Others are rejected:
//
//	400   several tenants, or an invalid one
//	401   no token, or an unknown one
//	403   the token or principal does not allow this access, or not to this tenant, or the document
//	      does not have the principal
//	503   no document of tokens could be read so far
//
// CORS preflights, which browsers send without a token, reach next without anything that names
// data. Rejections have the format of the handlers' errors: text if access is Write, else JSON of
// the Prometheus API. If access is Public, all requests reach next as they are.
func (g *Guard) Protect(access Access, next http.Handler) http.Handler {
	if g == nil || access == Public {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A CORS preflight of a browser (the Fetch standard, "CORS-preflight request").
		if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != "" {
			next.ServeHTTP(w, preflight(r))
			return
		}
		id, caller, refused := g.admit(r, access)
		if refused != nil {
			g.requests.WithLabelValues(refused.result).Inc()
			refused.write(w, r, access)
			return
		}
		g.requests.WithLabelValues("ok").Inc()
		r = r.Clone(context.WithValue(r.Context(), callerKey{}, callerOf{r.Header.Get("Authorization"), caller.id(), caller.Allowance}))
		r.Header.Del("Authorization")
		r.Header.Set(tenant.Header, id)
		next.ServeHTTP(w, r)
	})
}

type callerKey struct{}

type callerOf struct {
	authorization, id string
	allowance         Allowance
}

// Caller returns the ID of the token, or the ARN of the principal, of the request to which ctx
// belongs, as List shows it, and what its queries may take. "": it was not checked, or is of this
// process.
func Caller(ctx context.Context) (id string, a Allowance) {
	c, _ := ctx.Value(callerKey{}).(callerOf)
	return c.id, c.allowance
}

// Credentials returns the Authorization header of the request to which ctx belongs, for requests to
// processes that evaluate a part of it and check the sender's rights again. "": it had none, or was
// not checked.
func Credentials(ctx context.Context) string {
	c, _ := ctx.Value(callerKey{}).(callerOf)
	return c.authorization
}

// everything is the grant of the process's own token.
var everything = &grant{access: map[Access]bool{Read: true, Write: true, Admin: true}}

// admit returns the tenant and the caller of a request that is allowed.
func (g *Guard) admit(r *http.Request, access Access) (id string, caller Entry, refused *refusal) {
	var keys []string
	unknown := &refusal{"unknown", http.StatusUnauthorized, errUnknown}
	if arn, ok := r.Context().Value(principalKey{}).(string); ok {
		keys = principals(arn)
		unknown = &refusal{"unknown", http.StatusForbidden, fmt.Errorf("the document of tokens has no entry for the principal %s", arn)}
	} else {
		token, err := credentials(r.Header)
		if errors.Is(err, errAbsent) {
			return "", caller, &refusal{"absent", http.StatusUnauthorized, err}
		}
		if err != nil {
			return "", caller, &refusal{"malformed", http.StatusUnauthorized, err}
		}
		keys = []string{SumOf(token)}
	}
	// Nobody can construct sums that are close to a valid one, so the duration of the lookup
	// reveals nothing about valid tokens.
	granted := everything
	if !slices.Contains(keys, g.own) {
		grants, err := g.keys.all(r.Context(), keys)
		if err != nil {
			return "", caller, &refusal{"unavailable", http.StatusServiceUnavailable, err}
		}
		granted = first(grants, keys)
	}
	if granted == nil {
		return "", caller, unknown
	}
	if err := granted.allows(access); err != nil {
		return "", caller, &refusal{"access", http.StatusForbidden, err}
	}
	parse := tenant.FromRequest
	if access == Read {
		parse = tenant.AllFromRequest // what reads from one tenant refuses several
	}
	id, err := parse(r)
	if err != nil {
		return "", caller, &refusal{"tenant", http.StatusBadRequest, err}
	}
	id, err = granted.tenantOf(id, r.Header.Get(tenant.Header) != "")
	if err != nil {
		return "", caller, &refusal{"tenant", http.StatusForbidden, err}
	}
	return id, granted.entry, nil
}

// allows returns an error if the grant does not include an access.
func (g *grant) allows(access Access) error {
	needs := access
	if access == Operate {
		needs = Admin
	}
	if !g.access[needs] {
		return fmt.Errorf("%s lacks access %q", g.who(), needs)
	}
	if access == Operate && g.tenants != nil {
		return fmt.Errorf("this concerns all tenants, and %s is only for %s", g.who(), strings.Join(g.tenants, ", "))
	}
	return nil
}

// tenantOf returns the tenant of a request, or several. If the request has no tenant header and the
// grant is for exactly one tenant, that is the tenant.
func (g *grant) tenantOf(id string, named bool) (string, error) {
	if g.tenants == nil {
		return id, nil
	}
	if !named && len(g.tenants) == 1 {
		return g.tenants[0], nil
	}
	for one := range strings.SplitSeq(id, tenant.Separator) {
		switch {
		case slices.Contains(g.tenants, one):
		case !named:
			return "", fmt.Errorf("%s is for the tenants %s: name one of them in the header %s", g.who(), strings.Join(g.tenants, ", "), tenant.Header)
		default:
			return "", fmt.Errorf("%s is not for tenant %q", g.who(), one)
		}
	}
	return id, nil
}

// Settings are the location of the document of tokens. The tags are those of package settings.
type Settings struct {
	Tokens string `name:"auth.tokens" basic:"" placeholder:"SOURCE" help:"Source of the document of tokens: file:PATH, or ssm:NAME for a parameter of AWS Systems Manager. Default: requests need no token." when:"Set it on every server that others reach."`
}

// Enabled reports whether requests need a token.
func (s Settings) Enabled() bool { return s.Tokens != "" }

// Validate returns an error that names the flag of an invalid setting.
func (s Settings) Validate() error {
	if s.Enabled() && !IsReference(s.Tokens) {
		return fmt.Errorf("auth.tokens: want file:PATH or ssm:NAME, got %q", s.Tokens)
	}
	return nil
}

// Access is a kind of request. The zero value is Read.
type Access uint8

const (
	// Read is reading a tenant's data.
	Read Access = iota
	// Write is adding to a tenant's data.
	Write
	// Admin is deleting a tenant's data, and changing its rules.
	Admin
	// Operate concerns the process and all of its tenants: metrics, compaction. It requires access
	// "admin" for tenants ["*"].
	Operate
	// Public is reading what holds no data, such as the page's scripts. It takes no token.
	Public
)

// names maps the names of kinds of access in a document.
var names = map[string]Access{"read": Read, "write": Write, "admin": Admin}

// parseAccess parses the name of a kind of access: read, write or admin.
func parseAccess(name string) (Access, error) {
	a, ok := names[name]
	if !ok {
		return 0, fmt.Errorf("access %q: want read, write or admin", name)
	}
	return a, nil
}

// String returns the name in a document of the access that a token needs for a.
func (a Access) String() string {
	switch a {
	case Read:
		return "read"
	case Write:
		return "write"
	case Admin, Operate:
		return "admin"
	case Public:
		return "none"
	default:
		return fmt.Sprintf("Access(%d)", uint8(a))
	}
}
