package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/replica"
)

// Settings say where the runtime configuration is. The tags are those of package settings.
type Settings struct {
	File   string        `name:"runtime-config.file" basic:"" placeholder:"FILE" help:"YAML file with limits and relabeling of single tenants, or store for the object config/runtime.yaml of the store. Empty: all tenants have the defaults." when:"In a service that several teams share; functions take store. See admission.md."`
	Period time.Duration `name:"runtime-config.reload-period" default:"10s" above:"0" help:"Age at which the next request reads --runtime-config.file again. A change counts within this time." when:"Raise it to pay for fewer GET requests of functions."`
}

// readTimeout bounds one read of the document.
const readTimeout = 3 * time.Second

// Runtime is the runtime configuration of a process. Requests read it again when it is older than
// the period, because a function has no processor time between requests. While a changed document
// cannot be read, the last one stays valid. It is safe for concurrent use.
type Runtime struct {
	from   *source // nil: there are no overrides
	period time.Duration
	now    func() time.Time
	logger *slog.Logger

	known  atomic.Pointer[Document]
	tried  atomic.Int64  // ns, when a read was last tried
	turn   chan struct{} // holds one value while a request reads; guards seen and failed
	seen   string        // version of the text that is known; "" if a later one was invalid
	failed bool          // of the last read

	reloads *prometheus.CounterVec // by result
	good    prometheus.Gauge
	tenants prometheus.Gauge
}

// New reads the document for the first time, and returns an error if that fails.
func New(ctx context.Context, s Settings, store objstore.Getter, defaults Limits, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) (*Runtime, error) {
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_runtime_config_"}
	r := &Runtime{
		period: s.Period, now: now, logger: logger, turn: make(chan struct{}, 1),
		reloads: f.Counters("reads_total", "Reads of the runtime configuration by result: changed, unchanged or failed.", "result"),
		good:    f.Gauge("last_reload_successful", "1 if the runtime configuration could be read and was valid when it was read last."),
		tenants: f.Gauge("tenants", "Tenants with limits of their own."),
	}
	r.known.Store(Defaults(defaults))
	r.good.Set(1)
	if s.File == "" {
		return r, nil
	}
	r.from = open(s.File, store)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Overriding reports whether there is a document.
func (r *Runtime) Overriding() bool { return r.from != nil }

// Current returns the document, which is read before if it is too old.
func (r *Runtime) Current(ctx context.Context) *Document {
	if r.from != nil && r.due() {
		select {
		case r.turn <- struct{}{}:
			if r.due() { // the request before may have read it
				r.reload(ctx)
			}
			<-r.turn
		default: // another request reads it
		}
	}
	return r.known.Load()
}

// Replicas returns which series of the context's tenant are replicas of one another.
func (r *Runtime) Replicas(ctx context.Context) replica.Rule {
	return r.Current(ctx).Of(tenant.From(ctx)).HA.Rule()
}

// Queries returns what the queries of the context's tenant may take.
func (r *Runtime) Queries(ctx context.Context) auth.Allowance {
	return r.Current(ctx).Of(tenant.From(ctx)).Queries
}

// due reports whether the last read is old. A clock that was set back makes it due.
func (r *Runtime) due() bool {
	age := r.now().UnixNano() - r.tried.Load()
	return age < 0 || age >= int64(r.period)
}

// reload reads the document and keeps the last one if that fails. The caller holds turn. The read
// goes on if the caller's client goes away, because the result is everybody's.
func (r *Runtime) reload(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	err := r.read(ctx)
	if err == nil {
		r.failed = false
		return
	}
	r.reloads.WithLabelValues("failed").Inc()
	r.good.Set(0)
	if !r.failed {
		r.logger.Error("runtime configuration cannot be read, the last one stays valid", "err", err)
	}
	r.failed = true
}

// read replaces the document if it has changed.
func (r *Runtime) read(ctx context.Context) error {
	r.tried.Store(r.now().UnixNano())
	text, version, err := r.from.read(ctx, r.seen)
	if err != nil {
		return fmt.Errorf("read runtime configuration: %w", err)
	}
	if text == nil {
		r.good.Set(1)
		r.reloads.WithLabelValues("unchanged").Inc()
		return nil
	}
	d, err := Parse(text, r.known.Load())
	if err != nil {
		r.seen = ""
		return fmt.Errorf("%s: %w", r.from.name, err)
	}
	r.seen = version
	r.known.Store(d)
	r.reloads.WithLabelValues("changed").Inc()
	r.good.Set(1)
	r.tenants.Set(float64(d.Overrides()))
	r.logger.Info("read runtime configuration", "from", r.from.name, "tenants", d.Overrides())
	return nil
}

// ObjectKey is the key of a runtime configuration in the store.
const ObjectKey = "config/runtime.yaml"

// InStore, in place of the path of a file, means the object ObjectKey of the store.
const InStore = "store"

// source is where a document lies. Its text is at most MaxBytes and one; nil if the version is that
// of known.
type source struct {
	name string
	read func(ctx context.Context, known string) (text []byte, version string, err error)
}

// open returns the source that the setting names.
func open(setting string, store objstore.Getter) *source {
	if setting == InStore {
		return &source{"object " + ObjectKey + " of the store", object{store}.read}
	}
	return &source{setting, file(setting).read}
}

// file is a file by its path.
type file string

// read reads the file. The version is the text, so that every change counts, however quickly it
// follows another.
func (f file) read(_ context.Context, known string) ([]byte, string, error) {
	r, err := os.Open(string(f))
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = r.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", f, err)
	}
	if string(text) == known && known != "" {
		return nil, known, nil
	}
	return text, string(text), nil
}

// object is the object ObjectKey of a store.
type object struct{ store objstore.Getter }

// read reads the object. The version is its ETag.
func (o object) read(ctx context.Context, known string) (text []byte, version string, err error) {
	r, info, err := o.store.Get(ctx, ObjectKey, 0, MaxBytes+1)
	if errors.Is(err, objstore.ErrRange) { // the object is empty
		return []byte{}, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if closed := r.Close(); err == nil && closed != nil {
			err = fmt.Errorf("read object %s: %w", ObjectKey, closed)
		}
	}()
	if info.ETag == known && known != "" {
		return nil, known, nil
	}
	if text, err = io.ReadAll(r); err != nil {
		return nil, "", fmt.Errorf("read object %s: %w", ObjectKey, err)
	}
	return text, info.ETag, nil
}
