package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
)

// withStore calls f with the store at a URL, which exists.
func withStore(ctx context.Context, io flags.Streams, log telemetry.LogSettings, address string, f func(objstore.Store) error) (err error) {
	logger, err := telemetry.NewLogger(io.Err, log)
	if err != nil {
		return err
	}
	if err := reachable(ctx, address); err != nil {
		return err
	}
	p := process.DefaultSettings()
	p.Store = address
	store, end, err := process.OpenStore(ctx, p, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return f(store)
}

// reachable connects once to the endpoint that a store's URL names, if any and if no proxy is set.
// Requests are repeated for longer than a user waits to read that an address is wrong.
func reachable(ctx context.Context, store string) error {
	_, parameters, _ := strings.Cut(store, "?")
	values, err := url.ParseQuery(parameters)
	endpoint, perr := url.Parse(values.Get("endpoint"))
	if err != nil || perr != nil || endpoint.Host == "" {
		return nil // opening the store says what is wrong
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: endpoint}); err != nil || proxy != nil {
		return nil
	}
	port := endpoint.Port()
	if port == "" {
		port = endpoint.Scheme // a service's name is a port, too
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(endpoint.Hostname(), port))
	if err != nil {
		return fmt.Errorf("reach the store's endpoint %s: %w", endpoint.Host, err)
	}
	return c.Close()
}
