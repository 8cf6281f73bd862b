// Package listenapp makes listeners for lines stages of a process.
package listenapp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/graphite"
	"github.com/promlake/promlake/internal/listen"
	"github.com/promlake/promlake/internal/remotewrite"
	"github.com/promlake/promlake/internal/tenant"
)

// Settings are those of the listener for Graphite. The tags are those of package settings.
type Settings struct {
	Listen         string        `name:"graphite.listen" placeholder:"HOST:PORT" help:"Address for lines of Graphite's plaintext protocol, over TCP and UDP. Graphite's own port is 2003. Default: none." when:"Set it for senders of Graphite. They need no token: see graphite.md."`
	Tenant         string        `name:"graphite.tenant" default:"anonymous" help:"Tenant that Graphite's lines are written to." when:"Set it if the server has several tenants."`
	QueueBytes     int64         `name:"graphite.queue-bytes" type:"bytes" default:"32MiB" min:"1MiB" help:"Lines that wait to be stored. Beyond it TCP senders wait, and lines that come over UDP are dropped." when:"Raise it if senders over UDP must bridge an outage of the store."`
	MaxConnections int           `name:"graphite.max-connections" default:"1000" min:"1" help:"TCP connections for Graphite's lines at once. Each takes 16 KiB." when:"Raise it if there are more senders."`
	Interval       time.Duration `name:"graphite.flush-interval" default:"1s" above:"0" help:"Longest time that a line waits for others before it is stored." when:"Raise it for fewer and larger objects in a bucket."`
}

// Listeners are the listeners of a process. The composition passes them the ingest stage before
// they are built.
type Listeners struct {
	process.Idle
	set      Settings
	sink     listen.Sink
	graphite *listen.Listener
}

// New returns listeners for settings with an address.
func New(s Settings) *Listeners { return &Listeners{set: s} }

// Enabled reports whether there is something to listen for.
func (s Settings) Enabled() bool { return s.Listen != "" }

// Validate reports settings that make no sense.
func (s Settings) Validate() error {
	if _, err := tenant.Parse(s.Tenant); err != nil {
		return fmt.Errorf("graphite.tenant: %w", err)
	}
	return nil
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
	var err error
	l.graphite, err = listen.Open(ctx, listen.Settings{
		Address: l.set.Listen, Tenant: l.set.Tenant, QueueBytes: l.set.QueueBytes, MaxConnections: l.set.MaxConnections, Interval: l.set.Interval,
	}, listen.Protocol{
		Name: "graphite",
		Decode: func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
			return graphite.Decode(graphite.Request{Body: lines, Time: came.UnixMilli()}, g, rules, room)
		},
	}, l.sink, p.Registry, p.Logger, p.Now)
	return l, err
}

// GraphiteAddr is where the listener for Graphite listens, over TCP and UDP.
func (l *Listeners) GraphiteAddr() string { return l.graphite.Addr() }

// Drain implements process.Stage: what was received is stored.
func (l *Listeners) Drain(ctx context.Context) error {
	if err := l.graphite.Close(ctx); err != nil {
		return fmt.Errorf("close listener for graphite: %w", err)
	}
	return nil
}
