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

	"github.com/promlake/promlake/internal/secret"
	"github.com/promlake/promlake/internal/tenant"
)

// Guard stands before the handlers of a process. A nil Guard lets everything through. It is safe
// for concurrent use.
type Guard struct {
	keys     keys
	own      Sum // of the token that this process gives itself
	ownToken string
	requests *prometheus.CounterVec
}

// New returns the guard that s asks for, nil if requests need no token. A file is read now, and is
// an error if it is wrong; a remote document is read when the first request comes. It counts in
// reg:
//
//	promlake_auth_requests_total{result}   ok, absent, malformed, unknown, access, tenant, unavailable
func New(s Settings, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) (*Guard, error) {
	if !s.Enabled() {
		return nil, nil
	}
	from, err := secret.Open(s.Tokens)
	if err != nil {
		return nil, err
	}
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promlake_auth_requests_total",
		Help: "Requests to protected handlers by what became of their tokens: ok, absent, malformed, unknown, access and tenant (not among those of the token), unavailable (no document of tokens could be read).",
	}, []string{"result"})
	if err := reg.Register(requests); err != nil {
		return nil, fmt.Errorf("register authentication metrics: %w", err)
	}
	file, ok := from.(secret.File)
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

// OwnToken is a token that only this process knows, by which it may ask itself anything. It is ""
// where requests need none.
func (g *Guard) OwnToken() string {
	if g == nil {
		return ""
	}
	return g.ownToken
}

// Protect returns a handler that lets requests through to next whose token has the access, to the
// tenant that they name. Such a request reaches next without its Authorization header and with
// exactly one tenant header, and is refused otherwise:
//
//	400   more than one tenant is named, or one that is none
//	401   there is no token, or none that is known
//	403   the token has not this access, or not to this tenant
//	503   no document of tokens could be read yet
//
// CORS preflights, which browsers send without a token, reach next stripped of all that names data.
// Refusals are written as the handlers write their errors: text where access is Write, otherwise
// JSON of the Prometheus API.
func (g *Guard) Protect(access Access, next http.Handler) http.Handler {
	if g == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPreflight(r) {
			next.ServeHTTP(w, preflight(r))
			return
		}
		id, refused := g.admit(r, access)
		if refused != nil {
			g.requests.WithLabelValues(refused.result).Inc()
			refused.write(w, access)
			return
		}
		g.requests.WithLabelValues("ok").Inc()
		r = r.Clone(r.Context())
		r.Header.Del("Authorization")
		r.Header.Set(tenant.Header, id)
		next.ServeHTTP(w, r)
	})
}

// admit returns the tenant that the request may use.
func (g *Guard) admit(r *http.Request, access Access) (string, *refusal) {
	token, err := credentials(r.Header)
	if errors.Is(err, errAbsent) {
		return "", &refusal{"absent", http.StatusUnauthorized, err}
	}
	if err != nil {
		return "", &refusal{"malformed", http.StatusUnauthorized, err}
	}
	granted, err := g.grantOf(r.Context(), SumOf(token))
	if err != nil {
		return "", &refusal{"unavailable", http.StatusServiceUnavailable, err}
	}
	if granted == nil {
		return "", &refusal{"unknown", http.StatusUnauthorized, errUnknown}
	}
	if err := granted.allows(access); err != nil {
		return "", &refusal{"access", http.StatusForbidden, err}
	}
	id, err := tenant.FromRequest(r)
	if err != nil {
		return "", &refusal{"tenant", http.StatusBadRequest, err}
	}
	id, err = granted.tenantOf(id, r.Header.Get(tenant.Header) != "")
	if err != nil {
		return "", &refusal{"tenant", http.StatusForbidden, err}
	}
	return id, nil
}

// grantOf looks a token up by its sum. Nobody can choose sums that are close to a good one, so the
// time that this takes tells nothing about the tokens that are known.
func (g *Guard) grantOf(ctx context.Context, sum Sum) (*grant, error) {
	if sum == g.own {
		return &grant{access: map[Access]bool{Read: true, Write: true, Admin: true}}, nil
	}
	return g.keys.find(ctx, sum)
}

// allows returns what is missing for an access.
func (g *grant) allows(access Access) error {
	needs := access
	if access == Operate {
		needs = Admin
	}
	if !g.access[needs] {
		return fmt.Errorf("the token lacks access %q", needs)
	}
	if access == Operate && g.tenants != nil {
		return fmt.Errorf("this concerns all tenants, and the token is only for %s", strings.Join(g.tenants, ", "))
	}
	return nil
}

// tenantOf returns the tenant of a request that names id, or names none and would be the default's:
// the one tenant of the token stands in for a name.
func (g *grant) tenantOf(id string, named bool) (string, error) {
	switch {
	case g.tenants == nil:
		return id, nil
	case !named && len(g.tenants) == 1:
		return g.tenants[0], nil
	case slices.Contains(g.tenants, id):
		return id, nil
	case !named:
		return "", fmt.Errorf("the token is for the tenants %s: name one of them in the header %s", strings.Join(g.tenants, ", "), tenant.Header)
	default:
		return "", fmt.Errorf("the token is not for tenant %q", id)
	}
}
