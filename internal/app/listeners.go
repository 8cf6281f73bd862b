package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/senders/lineprotocol"
	"github.com/promlake/promlake/internal/senders/listen"
)

// Validate reports settings that make no sense.
func (s ListenerSettings) Validate() error {
	var errs []error
	for _, p := range s.protocols(lineprotocol.Naming{}, nil, time.Now) {
		if _, err := tenant.Parse(p.set.Tenant); err != nil {
			errs = append(errs, fmt.Errorf("%s.tenant: %w", p.Flags, err))
		}
	}
	return errors.Join(errs...)
}

// Listeners are the listeners of a process. The composition passes them the ingest stage before
// they are built.
type Listeners struct {
	process.Idle
	set    ListenerSettings
	naming lineprotocol.Naming
	sink   listen.Sink
	open   map[string]*listen.Listener // by protocol
}

// NewListeners returns listeners for settings with an address. Lines of InfluxDB get their names by naming.
func NewListeners(s ListenerSettings, naming lineprotocol.Naming) *Listeners {
	return &Listeners{set: s, naming: naming, open: map[string]*listen.Listener{}}
}

// WriteTo names the stage that lines are written to.
func (l *Listeners) WriteTo(sink listen.Sink) { l.sink = sink }

// Build makes the listeners a stage. It is built after the ingest stage.
func (l *Listeners) Build(ctx context.Context, p process.Parts) (process.Stage, error) {
	if l.sink == nil {
		return nil, errors.New("listen for lines: it needs an ingest stage in the same process")
	}
	if err := l.set.Validate(); err != nil {
		return nil, err
	}
	for _, x := range l.set.protocols(l.naming, p.Memory, p.Now) {
		one, err := listen.Open(ctx, listen.Settings{
			Address: x.set.Listen, Tenant: x.set.Tenant, QueueBytes: x.set.QueueBytes, MaxConnections: x.set.MaxConnections, Interval: x.set.Interval,
		}, x.Protocol, l.sink, p.Memory, p.Registry, p.Logger, p.Now)
		if err != nil {
			return nil, errors.Join(err, l.Drain(ctx))
		}
		l.open[x.Name] = one
	}
	return l, nil
}

// Addr is where the listener for a protocol listens, over TCP and UDP.
func (l *Listeners) Addr(protocol string) string { return l.open[protocol].Addr() }

// Drain implements process.Stage: what was received is stored.
func (l *Listeners) Drain(ctx context.Context) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for name, one := range l.open {
		wg.Go(func() {
			if err := one.Close(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("close listener for %s: %w", name, err))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
