package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	httpconfig "github.com/prometheus/common/config"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
)

// connectTimeout is how long a command tries to connect to a server.
const connectTimeout = 3 * time.Second

// source is what a command asks: a server, or a store through a query stage in this process.
type source struct {
	url           string // "" = the store
	store         string
	tenant, token string
	log           telemetry.LogSettings
	query         queryapp.Settings
}

// address is the server's URL; a store is asked through its own transport, whatever the address.
func (s source) address() string {
	if s.url != "" {
		return strings.TrimSuffix(s.url, "/")
	}
	return "http://store"
}

// client returns a client of the server, or of a query stage in this process. done releases what it
// holds; the bodies of all answers are closed then.
func (s source) client(ctx context.Context, io flags.Streams, vs flags.Values) (c *http.Client, done func() error, err error) {
	if s.url != "" {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DialContext = (&net.Dialer{Timeout: connectTimeout}).DialContext
		return &http.Client{Transport: s.identified(t)}, func() error { return nil }, nil
	}
	h, done, err := queryOf(ctx, s.store, s.log, s.query, io, vs)
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{Transport: s.identified(ask.Loopback(h))}, done, nil
}

// queryOf opens a query stage over a store, for all tenants. done releases what it holds; no
// request may be under way then.
func queryOf(
	ctx context.Context, store string, log telemetry.LogSettings, settings queryapp.Settings, io flags.Streams, vs flags.Values,
) (h http.Handler, done func() error, err error) {
	logger, err := telemetry.NewLogger(io.Err, log)
	if err != nil {
		return nil, nil, err
	}
	p := process.DefaultSettings()
	p.Store, p.Flags = store, vs
	return process.Open(ctx, p, logger, queryapp.New(settings))
}

// identified adds the tenant and the token to every request, if there are any.
func (s source) identified(next http.RoundTripper) http.RoundTripper {
	if s.token != "" {
		next = httpconfig.NewAuthorizationCredentialsRoundTripper("Bearer", httpconfig.NewInlineSecret(s.token), next)
	}
	if s.tenant != "" {
		next = httpconfig.NewHeadersRoundTripper(&httpconfig.Headers{Headers: map[string]httpconfig.Header{tenant.Header: {Values: []string{s.tenant}}}}, next)
	}
	return next
}

// withStore calls f with the store at a URL, which exists.
func withStore(ctx context.Context, io flags.Streams, log telemetry.LogSettings, url string, f func(objstore.Store) error) error {
	logger, err := telemetry.NewLogger(io.Err, log)
	if err != nil {
		return err
	}
	p := process.DefaultSettings()
	p.Store = url
	store, end, err := process.OpenStore(ctx, p, logger)
	if err != nil {
		return err
	}
	return errors.Join(f(store), end())
}
