// Package ingest turns remote_write requests into segments. A request is answered with success only
// when all of its samples are durable in the object store, or on the queue.
//
// A request (Stage.write) passes through its body (package body) and the decoder (package
// remotewrite: one batch, series resolved in place), and then by mode
//
//	grouped   → collector (package group: concurrent requests of a tenant form a group) → flusher → answer
//	direct    → flush → answer
//	buffered  → messages (package message) → queue → answer; later Consume: a batch of messages → flush
//
// A flush sorts samples by series (group.Sorter) and writes one segment per 2h window, one PUT
// each. Package body bounds the memory of all requests from their first byte until they are
// durable.
package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/ingest/quota"
	"github.com/promlake/promlake/internal/senders/otlp"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/internal/store/recent"
)

// Stage is the ingest stage of one process.
type Stage struct {
	set    Settings
	store  objstore.Store
	queue  queue.Sender   // mode Buffered only
	from   queue.Receiver // nil: the queue learns by Consume's result only
	memory *memory.Budget
	recent *recent.Segments // nil: none are kept
	log    *slog.Logger
	now    func() time.Time
	met    *metrics
	ids    *idSource

	maxMessage int // bytes of a message

	inflight *body.Budget // MaxInflightBytes
	bodies   *body.Reader
	otlp     atomic.Pointer[otlp.Translator]
	runtime  *admission.Runtime
	quotas   quota.Quotas
	refusals quota.Refusals
	active   atomic.Int64    // tenants that wrote lately: len(tenants)
	known    atomic.Int64    // bytes of the label sets and metadata that all tenants have learned
	ctx      context.Context // ends when Close gives up waiting
	cancel   context.CancelFunc

	mu      sync.Mutex
	tenants map[string]*tenantIngest
	closing bool
	swept   time.Time // time of the last search for idle tenants
}

// Option is a part that only some modes need.
type Option func(*Stage)

// To is the queue that mode Buffered sends to.
func To(q queue.Sender) Option { return func(s *Stage) { s.queue = q } }

// From is the queue whose messages Consume takes, and to which it releases those that failed.
func From(q queue.Receiver) Option { return func(s *Stage) { s.from = q } }

// Within is the memory of the process, from which that of the requests in flight is taken.
func Within(b *memory.Budget) Option { return func(s *Stage) { s.memory = b } }

// Keep is where the content of stored segments is kept for a compactor of this process.
func Keep(r *recent.Segments) Option { return func(s *Stage) { s.recent = r } }

// New returns a running stage.
func New(set Settings, store objstore.Store, reg prometheus.Registerer, log *slog.Logger, now func() time.Time, opts ...Option) (*Stage, error) {
	if err := set.Validate(); err != nil {
		return nil, fmt.Errorf("ingest settings: %w", err)
	}
	if set.Mode == Auto {
		set.Mode = Grouped
	}
	s := &Stage{
		set: set, store: store, log: log, now: now, met: newMetrics(reg, set.Mode), ids: newIDSource(rand.Reader),
		tenants: map[string]*tenantIngest{}, maxMessage: queue.MaxMessageBytes,
	}
	for _, o := range opts {
		o(s)
	}
	s.quotas.Memory = s.memory
	s.inflight = body.NewBudget(set.MaxInflightBytes, s.memory, s.met.inflightBytes)
	s.bodies = body.NewReader(set.body(), s.inflight, now, s.met.bodyBytes)
	s.otlp.Store(otlp.NewTranslator(set.OTLP))
	if set.Mode == Buffered && s.queue == nil {
		return nil, errors.New("ingest in mode buffered without a queue")
	}
	var err error
	if s.runtime, err = admission.New(context.Background(), set.Runtime, store, set.Limits, reg, log, now); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Tenants returns the runtime configuration, which other stages of the process may share.
func (s *Stage) Tenants() *admission.Runtime { return s.runtime }

// TranslateOTLP changes how metrics in the OpenTelemetry protocol are translated, for the requests
// that begin from now on. section decodes the section otlp of a configuration of Prometheus into
// the settings of the process: what it names takes the place of the flag. With an error nothing
// changes.
func (s *Stage) TranslateOTLP(section func(settings any) error) error {
	set := s.set
	if err := errors.Join(section(&set.OTLP), set.Validate()); err != nil {
		return fmt.Errorf("apply the section otlp of the configuration: %w", err)
	}
	s.otlp.Store(otlp.NewTranslator(set.OTLP))
	return nil
}

// Close refuses new requests, makes durable what was accepted, and lets the waiting requests be
// answered. If ctx ends first, flushes under way are cancelled and their requests get a retryable
// error.
func (s *Stage) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	all := slices.Collect(maps.Values(s.tenants))
	s.mu.Unlock()
	for _, t := range all {
		t.groups.Close()
	}
	err := drain(ctx, all)
	s.cancel()
	for _, t := range all {
		<-t.done
	}
	return err
}

// drain waits until no tenant has requests under way.
func drain(ctx context.Context, all []*tenantIngest) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, t := range all {
		for !t.groups.Idle() {
			select {
			case <-ctx.Done():
				return fmt.Errorf("close ingest: %w", ctx.Err())
			case <-tick.C:
			}
		}
	}
	return nil
}

// errTenants is the answer when too many tenants write at once.
type errTenants struct{ limit int }

func (e errTenants) Error() string {
	return fmt.Sprintf("too many tenants: %d are writing, which is the limit (max-tenants)", e.limit)
}

// enter returns the tenant with a request announced on its collector.
func (s *Stage) enter(id string) (*tenantIngest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, group.ErrClosing
	}
	t, ok := s.tenants[id]
	if !ok {
		s.sweep()
		if len(s.tenants) >= s.set.MaxTenants {
			return nil, errTenants{s.set.MaxTenants}
		}
		var err error
		if t, err = s.newTenant(id); err != nil {
			return nil, err
		}
		s.tenants[id] = t
		s.countTenants()
	}
	t.used = s.now()
	return t, t.groups.Enter()
}

// sweep forgets tenants that have been idle for long where no flusher does it. The caller holds
// s.mu.
func (s *Stage) sweep() {
	now := s.now()
	if s.set.Mode == Grouped || now.Sub(s.swept) < s.set.TenantIdle/8 && len(s.tenants) < s.set.MaxTenants {
		return
	}
	s.swept = now
	for id, t := range s.tenants {
		if now.Sub(t.used) >= s.set.TenantIdle && t.groups.Retire() {
			delete(s.tenants, id)
			t.unlearn()
		}
	}
}

// forget drops an idle tenant, and reports whether it did.
func (s *Stage) forget(t *tenantIngest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.groups.Retire() {
		return false
	}
	delete(s.tenants, t.id)
	t.unlearn()
	s.countTenants()
	return true
}

// countTenants publishes how many tenants wrote lately. The caller holds s.mu.
func (s *Stage) countTenants() {
	s.active.Store(int64(len(s.tenants)))
	s.met.tenants.Set(float64(len(s.tenants)))
}
