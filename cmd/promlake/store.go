package main

import (
	"context"
	"errors"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
)

// withStore calls f with the store at a URL, which exists.
func withStore(ctx context.Context, io flags.Streams, log telemetry.LogSettings, url string, f func(objstore.Store) error) (err error) {
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
	defer func() { err = errors.Join(err, end()) }()
	return f(store)
}
