package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/telemetry"
)

type readCmd struct {
	Store  string `name:"store" required:"" placeholder:"URL" help:"Object store to read."`
	Socket string `name:"socket" required:"" placeholder:"PATH" help:"Unix socket to create. Whoever can open it reads every tenant, so its directory should be private."`

	Log   telemetry.LogSettings `embed:""`
	Query queryapp.Settings     `embed:"" group:"Query of a store"`
}

// readEnd is how long requests may take to notice that nobody waits for them.
const readEnd = 20 * time.Second

// Run serves the query API on the socket until the standard input or ctx ends. It writes a line
// when it serves.
func (c *readCmd) Run(ctx context.Context, streams flags.Streams, vs flags.Values) (err error) {
	h, done, err := queryOf(ctx, c.Store, c.Log, c.Query, streams, vs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", c.Socket)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The process that started this one holds the other end of the input, and the kernel closes it
	// when that process ends in any way.
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, streams.In) // an error is an end, too
	}()
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	if _, err := fmt.Fprintln(streams.Out, "ready"); err != nil {
		cancel()
	}
	select {
	case err = <-served:
		cancel()
	case <-ctx.Done():
	}
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), readEnd)
	defer stop()
	if failed := srv.Shutdown(late); failed != nil {
		return errors.Join(err, fmt.Errorf("end requests: %w", failed), srv.Close())
	}
	return err
}
