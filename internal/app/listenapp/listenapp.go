// Package listenapp makes listeners for lines stages of a process.
package listenapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/graphite"
	"github.com/promlake/promlake/internal/lineprotocol"
	"github.com/promlake/promlake/internal/listen"
	"github.com/promlake/promlake/internal/opentsdb"
	"github.com/promlake/promlake/internal/remotewrite"
	"github.com/promlake/promlake/internal/tenant"
)

// Settings are those of all listeners. The tags are those of package settings.
type Settings struct {
	Graphite Lines `embed:"" prefix:"graphite."`
	Influx   Lines `embed:"" prefix:"influx."`
	OpenTSDB Lines `embed:"" prefix:"opentsdb."`
}

// Lines are the settings of the listener for one protocol, whose name is the prefix of the flags.
type Lines struct {
	Listen         string        `name:"listen" placeholder:"HOST:PORT" help:"Address for lines of the protocol, over TCP and UDP. Usual ports: Graphite 2003, InfluxDB 8089, OpenTSDB 4242. Default: none." when:"Set it for senders that do not use HTTP. They need no token: see listeners.md."`
	Tenant         string        `name:"tenant" default:"anonymous" help:"Tenant that the lines of the listener are written to." when:"Set it if the server has several tenants."`
	QueueBytes     int64         `name:"queue-bytes" type:"bytes" default:"32MiB" min:"1MiB" help:"Lines of the listener that wait to be stored. Beyond it TCP senders wait, and lines that come over UDP are dropped." when:"Raise it if senders over UDP must bridge an outage of the store."`
	MaxConnections int           `name:"max-connections" default:"1000" min:"1" help:"TCP connections to the listener at once. Each takes 16 KiB." when:"Raise it if there are more senders."`
	Interval       time.Duration `name:"flush-interval" default:"1s" above:"0" help:"Longest time that a line of the listener waits for others before it is stored." when:"Raise it for fewer and larger objects in a bucket."`
}

// The protocols, by the prefixes of their flags.
const (
	Graphite = "graphite"
	Influx   = "influx"
	OpenTSDB = "opentsdb"
)

// Enabled reports whether there is something to listen for.
func (s Settings) Enabled() bool {
	return s.Graphite.Listen != "" || s.Influx.Listen != "" || s.OpenTSDB.Listen != ""
}

// protocol is one that has a listener.
type protocol struct {
	listen.Protocol

	set Lines
}

// protocols returns those that are listened for. Lines of InfluxDB get their names by naming.
func (s Settings) protocols(naming lineprotocol.Naming) (out []protocol) {
	for _, p := range []protocol{
		{listen.Protocol{
			Name: Graphite,
			Decode: func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				return graphite.Decode(graphite.Request{Body: lines, Time: came.UnixMilli()}, g, rules, room)
			},
		}, s.Graphite},
		{listen.Protocol{
			Name: Influx,
			Decode: func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				b, _, err := lineprotocol.Decode(lineprotocol.Request{Body: lines, Naming: naming, Precision: lineprotocol.Nanoseconds, Came: came}, g, rules, room)
				return b, err
			},
		}, s.Influx},
		{listen.Protocol{
			Name: OpenTSDB,
			Decode: func(lines []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				return opentsdb.DecodeLines(lines, g, rules, room)
			},
		}, s.OpenTSDB},
	} {
		if p.set.Listen != "" {
			out = append(out, p)
		}
	}
	return out
}

// Validate reports settings that make no sense.
func (s Settings) Validate() error {
	var errs []error
	for _, p := range s.protocols(lineprotocol.Naming{}) {
		if _, err := tenant.Parse(p.set.Tenant); err != nil {
			errs = append(errs, fmt.Errorf("%s.tenant: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Listeners are the listeners of a process. The composition passes them the ingest stage before
// they are built.
type Listeners struct {
	process.Idle
	set    Settings
	naming lineprotocol.Naming
	sink   listen.Sink
	open   map[string]*listen.Listener // by protocol
}

// New returns listeners for settings with an address. Lines of InfluxDB get their names by naming.
func New(s Settings, naming lineprotocol.Naming) *Listeners {
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
	for _, x := range l.set.protocols(l.naming) {
		one, err := listen.Open(ctx, listen.Settings{
			Address: x.set.Listen, Tenant: x.set.Tenant, QueueBytes: x.set.QueueBytes, MaxConnections: x.set.MaxConnections, Interval: x.set.Interval,
		}, x.Protocol, l.sink, p.Registry, p.Logger, p.Now)
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
