// Package process holds what the stages of every Promlake process share: the store, the metrics
// registry, the HTTP server with its health endpoints, and an orderly shutdown. It knows no stage;
// its callers pass builders.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/selfwrite"
	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/instrument"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// Run serves the stages until ctx ends, then drains them and returns nil. It listens before it
// builds the stages, so that an address in use fails at once and probes are answered from the
// start.
func Run(ctx context.Context, s Settings, logger *slog.Logger, builders ...Builder) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("check settings: %w", err)
	}
	file, err := readWebFile(s.WebFile)
	if err != nil {
		return err
	} else if file.Users && s.Auth.Enabled() {
		return errors.New("--web.config.file has users and --auth.tokens is set, but a request has one header for either; give one of them")
	}
	tuneGC(s)
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("open listener: %w", err)
	}
	g := &gate{}
	conns := NewConnections(ln, "http", "web.max-connections", s.MaxConnections, s.WriteStallTimeout)
	conns.spare = spareConnections
	srv := newServer(s, g, conns, logger)
	served := make(chan error, 1)
	go func() {
		if s.WebFile == "" {
			served <- srv.Serve(conns)
		} else {
			served <- web.Serve(conns, srv, &web.FlagConfig{WebConfigFile: &s.WebFile}, logger)
		}
	}()

	ready := make(chan struct{})
	p := Parts{Logger: logger, Now: time.Now, URL: localURL(ln.Addr(), file.tls), Ready: ready, Handler: g, HTTP: s.Timeouts, Web: file}
	made, err := start(ctx, s, s.budget(), p, isLoopback(ln.Addr()), builders)
	if err != nil {
		return errors.Join(fmt.Errorf("start: %w", err), srv.Close())
	}
	conns.Register(made.reg)
	all := made.stages
	if made.self != nil {
		// Started last, so that it ends first: the ingest stage still accepts its last write.
		all = append(all, background{Work: Begin("the writing of own metrics", made.self.Run), last: made.self.Flush})
	}
	// The first requests run without a collection, unless the operator has set its target.
	if s.GCPercent == 0 && os.Getenv("GOGC") == "" {
		memory.SpareCollection(firstRequestsBytes)
	}
	g.open(made.handler, made.root)
	serving, end := context.WithCancel(ctx)
	defer end()
	unfit := make(chan error, 1)
	if made.root.Writes() != nil {
		go func() {
			if err := made.checkAgain(serving, logger); err != nil {
				unfit <- err
			}
		}()
	}
	close(ready)
	logger.Info("serving", "url", p.URL, "store", publicURL(s.Store), "version", telemetry.ReadBuild().Version)
	if !s.Auth.Enabled() && !file.Users && !isLoopback(ln.Addr()) {
		logger.Warn("other machines can send requests without a token; set --auth.tokens to require one, or --web.config.file", "listen", ln.Addr().String())
	}

	select {
	case <-ctx.Done():
		logger.Info("shutting down", "timeout", s.ShutdownTimeout)
		err = nil
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case err = <-unfit:
		err = fmt.Errorf("store %s: %w", publicURL(s.Store), err)
	}
	return errors.Join(err, shutdown(ctx, s.ShutdownTimeout, g, srv, all))
}

// Open builds the stages over a store that exists and their handler without serving them, for
// programs that ask a stage themselves: a mistyped directory is an error there, not a new store.
// The store is not checked. end drains and closes the stages; no request may be under way then.
func Open(ctx context.Context, s Settings, logger *slog.Logger, builders ...Builder) (h http.Handler, end func() error, err error) {
	if err := s.Validate(); err != nil {
		return nil, nil, fmt.Errorf("check settings: %w", err)
	}
	if err := cmp.Or(storeurl.Exists(s.Store), storeurl.Reachable(ctx, s.Store)); err != nil {
		return nil, nil, err
	}
	tuneGC(s)
	s.CheckStore = false // the programs may only read
	ready := make(chan struct{})
	close(ready)
	made, err := start(ctx, s, s.budget(), Parts{Logger: logger, Now: time.Now, Ready: ready}, false, builders)
	if err != nil {
		return nil, nil, err
	}
	return made.handler, func() error { return made.stages.end(context.WithoutCancel(ctx)) }, nil
}

// OpenStore opens a store that exists, for programs that need nothing else. The caller calls end.
func OpenStore(ctx context.Context, s Settings, logger *slog.Logger) (store objstore.Store, end func() error, err error) {
	_, end, err = Open(ctx, s, logger, func(_ context.Context, p Parts) (Stage, error) {
		store = p.Store
		return Idle{}, nil
	})
	return store, end, err
}

// started is what start made.
type started struct {
	stages  stages
	handler http.Handler      // of all stages, behind the guard
	self    *selfwrite.Writer // nil: the process does not write its own metrics
	reg     *prometheus.Registry
	root    *probe.Rooted  // nil in a function
	store   objstore.Store // below root, instrumented
}

// start opens the store, builds the stages and routes to them. loopback means that only this
// machine can reach the process.
func start(ctx context.Context, s Settings, limit memoryLimit, p Parts, loopback bool, builders []Builder) (*started, error) {
	// Nobody collects the spans of upstream's packages. By default each of a query's takes 250 bytes.
	otel.SetTracerProvider(noop.NewTracerProvider())
	reg, err := telemetry.NewRegistry(telemetry.ReadBuild())
	if err != nil {
		return nil, err
	}
	p.Memory = memory.New(limit.bytes, memory.ThisProcess(limit.bytes, limit.tune), reg)
	if err := cost.Register(reg, os.Getenv("AWS_REGION")); err != nil {
		return nil, err
	}
	guard, err := auth.New(s.Auth, reg, p.Logger, p.Now)
	if err != nil {
		return nil, err
	}
	site, err := auth.NewSite(s.Site, loopback, reg)
	if err != nil {
		return nil, err
	}
	store, err := storeurl.Open(ctx, s.Store)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", publicURL(s.Store), err)
	}
	p.Writes = &instrument.Writes{}
	made := &started{reg: reg, store: instrument.New(store, reg, p.Writes)}
	p.Registry, p.Store, p.Flags, p.Token = reg, made.store, s.Flags, guard.OwnToken()
	if !lambda.Running() { // a bucket of a function cannot be another one, and each start would wait
		if p.Store, err = made.openRoot(ctx, s, store, p); err != nil {
			return nil, fmt.Errorf("store %s: %w", publicURL(s.Store), err)
		}
	}
	all, err := build(ctx, p, append([]Builder{func(_ context.Context, p Parts) (Stage, error) {
		return watch{Work: Begin("the measuring of memory", p.Memory.Watch)}, nil
	}}, builders...))
	if err != nil {
		return nil, err
	}
	var own http.Handler // of the write stage, without guard
	if s.Self.URL == selfwrite.Here {
		for _, stage := range all {
			for _, r := range stage.Routes() {
				if r.Pattern == writePath {
					own = r.Handler
				}
			}
		}
	}
	if made.self, err = selfwrite.New(s.Self, reg, reg, own, p.Logger, p.Now); err != nil {
		return nil, errors.Join(err, all.end(ctx))
	}
	made.stages, made.handler = all, routes(reg, site, guard, all)
	return made, nil
}

// openRoot returns the store for the stages, and checks it if the settings ask for that. A store
// that can be read, and does not answer the check, allows no writes: its disk may be full.
func (made *started) openRoot(ctx context.Context, s Settings, store objstore.Store, p Parts) (objstore.Store, error) {
	place, _ := store.(probe.Place)
	root, unread := probe.NewRooted(ctx, made.store, place, p.Logger, p.Now)
	made.root = root
	promauto.With(made.reg).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "promlake_objstore_refuses",
		Help: "0 if the store is used; 1 if writes are refused until its check succeeds; 2 if its root is gone or is another one, so that everything is refused.",
	}, func() float64 {
		switch {
		case root.Root(context.Background()) != nil:
			return 2
		case root.Writes() != nil:
			return 1
		}
		return 0
	})
	var err error
	if s.CheckStore {
		within, end := context.WithTimeout(ctx, firstCheck)
		err = probe.Check(within, made.store)
		end()
	}
	switch {
	case err == nil:
		root.AllowWrites()
	case unread != nil || errors.Is(err, probe.ErrUnfit) || ctx.Err() != nil:
		return nil, errors.Join(err, unread)
	default:
		p.Logger.Error("writes are refused until a check of the store succeeds", "error", err)
	}
	return root.Objects(), nil
}

const (
	// firstCheck is how long readers wait for the check of a store.
	firstCheck = 5 * time.Second
	// checkPause is the time between two checks of a store that did not answer the first one.
	checkPause = 3 * time.Second
)

// checkAgain checks the store until the check succeeds, and allows writes then. It returns an error
// once the store turns out to be unfit.
func (made *started) checkAgain(ctx context.Context, logger *slog.Logger) (unfit error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	Repeat(ctx, checkPause, func() {
		err := probe.Check(ctx, made.store)
		switch {
		case err == nil:
			made.root.AllowWrites()
			logger.Info("the store was checked, writes are accepted")
			end()
		case errors.Is(err, probe.ErrUnfit):
			unfit = err
			end()
		default:
			logger.Warn("writes are still refused", "error", err)
		}
	})
	return unfit
}

// routes leads to the stages. Every handler is behind both guards; the health endpoints are the
// gate's and open.
func routes(reg *prometheus.Registry, site *auth.Site, guard *auth.Guard, all stages) http.Handler {
	mux := http.NewServeMux()
	named := telemetry.Instrument(reg)
	handle := func(r Route) {
		h := guard.Protect(r.Access, r.Handler)
		if r.APIKey {
			h = guard.APIKey(h)
		}
		h = site.Protect(r.Access, h)
		if r.Name != "" {
			h = named(r.Name, h)
		}
		mux.Handle(r.Pattern, h)
	}
	handle(Route{
		Pattern: "GET /metrics", Name: "/metrics", Access: auth.Operate,
		Handler: promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}),
	})
	handle(Route{Pattern: "GET /api/v1/status/tokens", Name: "/api/v1/status/tokens", Access: auth.Operate, Handler: guard.List()})
	for _, stage := range all {
		for _, r := range stage.Routes() {
			handle(r)
		}
	}
	return aliased(mux)
}

func newServer(s Settings, h http.Handler, conns *Connections, logger *slog.Logger) *http.Server {
	// No WriteTimeout: remote read streams for as long as its query may take, and stages bound
	// their own work. Clients that do not read are the connections' to close.
	return &http.Server{
		Handler:           draining(conns.bounded(h)),
		ReadHeaderTimeout: s.ReadHeaderTimeout,
		ReadTimeout:       s.ReadTimeout,
		IdleTimeout:       s.IdleTimeout,
		MaxHeaderBytes:    s.MaxHeaderBytes,
		ConnState:         conns.note,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// shutdown ends the process within timeout. The order matters. Readiness ends first, so that load
// balancers route elsewhere. The stages drain while the server waits for its requests, because
// those requests wait for the flush. The stages are closed only after the last answer.
func shutdown(ctx context.Context, timeout time.Duration, g *gate, srv *http.Server, all stages) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	g.drain()
	answered := make(chan error, 1)
	go func() { answered <- srv.Shutdown(ctx) }()
	errs := []error{all.drain(ctx)}
	if err := <-answered; err != nil {
		errs = append(errs, fmt.Errorf("answer pending requests within %s: %w", timeout, err), srv.Close())
	}
	return errors.Join(append(errs, all.close())...)
}

// localURL is the base URL of a listener as this machine reaches it.
func localURL(a net.Addr, tls bool) string {
	scheme := "http://"
	if tls {
		scheme = "https://"
	}
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return scheme + a.String()
	}
	return fmt.Sprintf("%s127.0.0.1:%d", scheme, tcp.Port)
}

// isLoopback reports whether only this machine can reach a listener.
func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// publicURL is a store URL fit for logs: parameters may hold credentials.
func publicURL(store string) string {
	base, _, _ := strings.Cut(store, "?")
	return base
}
