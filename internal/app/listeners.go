package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/graphite"
	"github.com/promlake/promlake/internal/senders/lineprotocol"
	"github.com/promlake/promlake/internal/senders/listen"
	"github.com/promlake/promlake/internal/senders/opentsdb"
	"github.com/promlake/promlake/internal/senders/statsd"
	"github.com/promlake/promlake/internal/sql/flightsql"
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

// NewListeners returns listeners for settings with an address. Lines of InfluxDB get their names by
// naming.
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

// ListenerSettings are those of all listeners. The tags are those of package settings.
type ListenerSettings struct {
	Graphite GraphiteLines `embed:"" prefix:"graphite."`
	Influx   Lines         `embed:"" prefix:"influx."`
	OpenTSDB Lines         `embed:"" prefix:"opentsdb."`
	StatsD   Sums          `embed:"" prefix:"statsd."`
}

// Lines are the settings of the listener for one protocol, whose name is the prefix of the flags.
type Lines struct {
	Listen         string        `name:"listen" basic:"" placeholder:"HOST:PORT" help:"Address for lines of the protocol, over TCP and UDP. Usual ports: Graphite 2003, InfluxDB 8089, OpenTSDB 4242. Default: none." when:"Set it for senders that do not use HTTP. They need no token: see listeners.md."`
	Tenant         string        `name:"tenant" default:"anonymous" help:"Tenant that the lines of the listener are written to." when:"Set it if the server has several tenants."`
	QueueBytes     int64         `name:"queue-bytes" type:"bytes" default:"32MiB" min:"1MiB" help:"Lines of the listener that wait to be stored. Beyond it TCP senders wait, and lines that come over UDP are dropped." when:"Raise it if senders over UDP must bridge an outage of the store."`
	MaxConnections int           `name:"max-connections" default:"1000" min:"1" help:"TCP connections to the listener at once. Each takes 16 KiB." when:"Raise it if there are more senders."`
	Interval       time.Duration `name:"flush-interval" default:"1s" above:"0" help:"Longest time that a line of the listener waits for others before it is stored." when:"Raise it for fewer and larger objects in a bucket."`
}

// GraphiteLines are the settings of the listeners for Graphite's protocols.
type GraphiteLines struct {
	Lines  `embed:""`
	Pickle string `name:"pickle-listen" placeholder:"HOST:PORT" help:"Address for Graphite's pickle protocol, over TCP, with the other settings of Graphite's lines. Usual port: 2004. Default: none." when:"Set it for carbon's relays, which send pickles."`
}

// Sums are the settings of the listener for StatsD.
type Sums struct {
	Listen         string        `name:"listen" basic:"" placeholder:"HOST:PORT" help:"Address for StatsD, over UDP and TCP. Usual port: 8125. Default: none." when:"Set it for senders of StatsD and DogStatsD. They need no token: see listeners.md."`
	Tenant         string        `name:"tenant" default:"anonymous" help:"Tenant that the metrics of StatsD are written to." when:"Set it if the server has several tenants."`
	MaxConnections int           `name:"max-connections" default:"1000" min:"1" help:"TCP connections to the listener at once. Each takes 16 KiB." when:"Raise it if there are more senders."`
	Interval       time.Duration `name:"flush-interval" default:"10s" above:"0" help:"Time between two samples of each series of StatsD. Must be below the lookback of queries." when:"Raise it for fewer samples."`
	Timers         statsd.Timers `name:"timers" default:"summary" enum:"summary,native-histogram" help:"What timers, histograms and distributions become, one of ${enum}. A summary has the quantiles 0.5, 0.9 and 0.99." when:"Set native-histogram for any quantile, also over several series."`
	MaxSeries      int           `name:"max-series" default:"50000" min:"1" help:"Series of StatsD that are kept in memory. Events for more are left out. A summary takes five series." when:"Raise it if events are left out and memory is free."`
	MaxSetValues   int           `name:"max-set-values" default:"200000" min:"1" help:"Distinct values of all sets of StatsD between two flushes. More are left out. Each takes about 50 bytes." when:"Raise it if values are left out and memory is free."`
	MaxStateBytes  int64         `name:"max-state-bytes" type:"bytes" default:"1GiB" min:"1MiB" help:"Memory of what StatsD's events add up to, at most a quarter of memory-limit. Events that need more are left out. A summary counts as 128 KiB, a native histogram as 8 KiB." when:"Raise it if events are left out and memory is free."`
	TTL            time.Duration `name:"ttl" default:"1h" min:"0" help:"Time after its last event at which a series of StatsD ends and is forgotten; 0 is never." when:"Lower it if names change often, raise it for gauges that are sent rarely."`
}

// Enabled reports whether there is something to listen for.
func (s ListenerSettings) Enabled() bool {
	return s.Graphite.Listen != "" || s.Graphite.Pickle != "" || s.Influx.Listen != "" || s.OpenTSDB.Listen != "" || s.StatsD.Listen != ""
}

// lines are those of a listener for StatsD that it shares with others.
func (s Sums) lines() Lines {
	return Lines{Listen: s.Listen, Tenant: s.Tenant, QueueBytes: 1, MaxConnections: s.MaxConnections, Interval: s.Interval}
}

// pickles are the settings of the listener for pickles.
func (s GraphiteLines) pickles() Lines {
	l := s.Lines
	l.Listen = s.Pickle
	return l
}

// The protocols, by the prefixes of their flags, except Pickle, which shares those of Graphite.
const (
	Graphite = "graphite"
	Pickle   = "graphite-pickle"
	Influx   = "influx"
	OpenTSDB = "opentsdb"
	StatsD   = "statsd"
)

// protocol is one that has a listener.
type protocol struct {
	listen.Protocol

	set Lines
}

// protocols returns those that are listened for. Lines of InfluxDB get their names by naming. What
// StatsD adds up is charged to budget.
func (s ListenerSettings) protocols(naming lineprotocol.Naming, budget *memory.Budget, now func() time.Time) (out []protocol) {
	plaintext := func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		return graphite.Decode(graphite.Request{Body: lines, Time: came.UnixMilli()}, g, rules, room)
	}
	for _, p := range []protocol{
		{listen.Protocol{Name: Graphite, Flags: Graphite, Decode: plaintext}, s.Graphite.Lines},
		{listen.Protocol{Name: Pickle, Flags: Graphite, Decode: plaintext, Unpack: graphite.FromPickle, MaxMessage: graphite.MaxPickle}, s.Graphite.pickles()},
		{listen.Protocol{
			Name: Influx, Flags: Influx,
			Decode: func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				b, _, err := lineprotocol.Decode(lineprotocol.Request{Body: lines, Naming: naming, Precision: lineprotocol.Nanoseconds, Came: came}, g, rules, room)
				return b, err
			},
		}, s.Influx},
		{listen.Protocol{
			Name: OpenTSDB, Flags: OpenTSDB,
			Decode: func(lines []byte, _ time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
				return opentsdb.DecodeLines(lines, g, rules, room)
			},
		}, s.OpenTSDB},
		{listen.Protocol{Name: StatsD, Flags: StatsD}, s.StatsD.lines()},
	} {
		if p.set.Listen == "" {
			continue
		}
		if p.Name == StatsD {
			p.Aggregate = sums{statsd.New(statsd.Settings{
				Timers: s.StatsD.Timers, MaxSeries: s.StatsD.MaxSeries, MaxSetValues: s.StatsD.MaxSetValues, TTL: s.StatsD.TTL,
				MaxStateBytes: s.StatsD.MaxStateBytes, Memory: budget,
			}, now)}
		}
		out = append(out, p)
	}
	return out
}

// sums makes an aggregator that of a listener.
type sums struct{ *statsd.Aggregator }

// Flush implements listen.Aggregate.
func (s sums) Flush() (samples int, size int64, source listen.Source) {
	f := s.Aggregator.Flush()
	return f.Len(), f.Size(), f.Batch
}

// FlightSettings are those of the server. The tags are those of package settings.
type FlightSettings struct {
	Listen         string `name:"flight.listen-address" basic:"" placeholder:"HOST:PORT" help:"Address for Arrow Flight SQL (gRPC, with TLS if --web.config.file has it). Usual port: 31337. Default: none." when:"Set it for ADBC clients. They have the tokens, tenants and limits of /api/v1/sql."`
	MaxConnections int    `name:"flight.max-connections" default:"256" min:"1" help:"Flight SQL connections at once. One more replaces one without a call, and is closed if there is none." when:"Raise it if more clients stay connected."`

	MaxCalls        int `name:"flight.max-calls" default:"128" min:"1" help:"Flight SQL calls at once; others are refused. Each holds --flight.max-message-bytes of --memory-limit." when:"Raise it if clients get RESOURCE_EXHAUSTED."`
	MaxMessageBytes int `name:"flight.max-message-bytes" type:"bytes" default:"1MiB" min:"4KiB" help:"Largest message of a Flight SQL call: a statement with its parameters." when:"Raise it if clients get \"received message larger than max\"."`
}

// FlightServer is the stage.
type FlightServer struct {
	process.Idle
	set  FlightSettings
	open *flightsql.Server
}

// connections are those of a gRPC server, which closes its listener when it ends, and then waits
// for the first bytes of all connections.
type connections struct{ *process.Connections }

// Close implements net.Listener.
func (c connections) Close() error {
	defer c.CloseSilent()
	return c.Connections.Close()
}

// NewFlight returns the stage for settings with an address.
func NewFlight(s FlightSettings) *FlightServer { return &FlightServer{set: s} }

// Build opens the server, which asks the process's own handler. It is built after the query stage.
func (s *FlightServer) Build(ctx context.Context, p process.Parts) (_ process.Stage, err error) {
	if p.Handler == nil {
		return nil, errors.New("listen for Flight SQL: this process has no HTTP server")
	}
	if p.Web.Users {
		return nil, errors.New("--flight.listen-address: Flight SQL does not know the users of --web.config.file; use --auth.tokens or client certificates in their place")
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.set.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for Flight SQL: %w", err)
	}
	conns := connections{process.NewConnections(ln, "flight", "flight.max-connections", s.set.MaxConnections, p.HTTP.WriteStallTimeout)}
	s.open, err = flightsql.Open(flightsql.Settings{
		Connections: conns, TLS: p.Web.TLS("h2"), IdleTimeout: p.HTTP.IdleTimeout, ConnectTimeout: p.HTTP.ReadHeaderTimeout, ReadTimeout: p.HTTP.ReadTimeout,
		MaxCalls: s.set.MaxCalls, MaxMessageBytes: s.set.MaxMessageBytes, Memory: p.Memory,
		Version: telemetry.ReadBuild().Version, Logger: p.Logger, Registry: p.Registry,
	}, ask.Loopback(p.Handler))
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	conns.Register(p.Registry)
	p.Logger.Info("serving Flight SQL", "listen", s.open.Addr())
	return s, nil
}

// Addr is where the server listens.
func (s *FlightServer) Addr() string { return s.open.Addr() }

// Drain implements process.Stage: statements under way end.
func (s *FlightServer) Drain(ctx context.Context) error { return s.open.Close(ctx) }
