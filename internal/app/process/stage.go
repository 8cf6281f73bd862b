package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/instrument"
)

// Parts is what a process hands to each of its stages.
type Parts struct {
	Store    objstore.Store     // instrumented
	Writes   *instrument.Writes // to Store by this process
	Registry *prometheus.Registry
	Memory   *memory.Budget // of the process; nil: it has no limit
	Flags    flags.Values   // of the process
	Logger   *slog.Logger
	Now      func() time.Time
	URL      string          // where this process answers on this machine, no trailing slash
	Token    string          // what this process sends when it asks itself there; "" where requests need no token
	Ready    <-chan struct{} // closed once the process answers requests

	// Handler answers as the HTTP server does, behind the same guards; nil in programs without one.
	Handler http.Handler
	HTTP    Timeouts
	Web     WebFile
}

// Route is one HTTP handler of a stage.
type Route struct {
	Pattern string // as http.ServeMux has it
	Name    string // the handler's name in metrics; "" if the handler instruments itself
	Access  auth.Access
	APIKey  bool // the token may come as Datadog's API key
	Handler http.Handler
}

// Stage is one component of a process. Its life is Routes, requests, Drain, last answers, Close.
type Stage interface {
	// Routes lists the handlers; patterns are unique in the process.
	Routes() []Route
	// Drain finishes the work that pending requests wait for and refuses new work. The process
	// accepts no new connections, but still answers requests.
	Drain(ctx context.Context) error
	// Close releases what the stage holds, after the last request was answered.
	Close() error
}

// Idle is a stage that does nothing itself. Builders return it when they need only the Parts, or
// when other code drives what they built.
type Idle struct{}

// Routes implements Stage.
func (Idle) Routes() []Route { return nil }

// Drain implements Stage.
func (Idle) Drain(context.Context) error { return nil }

// Close implements Stage.
func (Idle) Close() error { return nil }

// Builder makes a stage.
type Builder func(ctx context.Context, p Parts) (Stage, error)

// stages are in the order in which they were built; they end in the opposite order.
type stages []Stage

// build makes all stages or none.
func build(ctx context.Context, p Parts, builders []Builder) (stages, error) {
	var all stages
	for _, b := range builders {
		s, err := b(ctx, p)
		if err != nil {
			return nil, errors.Join(err, all.end(ctx))
		}
		all = append(all, s)
	}
	return all, nil
}

// end drains and closes stages that no request is in.
func (all stages) end(ctx context.Context) error {
	return errors.Join(all.drain(ctx), all.close())
}

func (all stages) drain(ctx context.Context) error {
	var errs []error
	for i := len(all) - 1; i >= 0; i-- {
		if err := all[i].Drain(ctx); err != nil {
			errs = append(errs, fmt.Errorf("drain: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (all stages) close() error {
	var errs []error
	for i := len(all) - 1; i >= 0; i-- {
		if err := all[i].Close(); err != nil {
			errs = append(errs, fmt.Errorf("close: %w", err))
		}
	}
	return errors.Join(errs...)
}
