package main

import (
	"net/http"

	"github.com/promlake/promlake/internal/access/tenant"
)

// identified adds the tenant to every request, and the token if there is one. It implements
// http.RoundTripper.
type identified struct {
	tenant, token string
	next          http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a identified) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if a.tenant != "" {
		r.Header.Set(tenant.Header, a.tenant)
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.next.RoundTrip(r)
}
