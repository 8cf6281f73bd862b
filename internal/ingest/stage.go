// Package ingest turns remote_write requests into segments. A request is answered with success only when all of its samples are
// durable in the object store.
//
// The way of a request: body → snappy → decoder (one batch, series resolved in place), and then by mode
//
//	grouped   → collector (concurrent requests of a tenant form a group) → flusher → answer
//	direct    → flush → answer
//	buffered  → packer → queue → answer, and a batch of messages later: unpacker → flush
//
// A flush sorts samples by series and writes one segment per 2h window, one PUT each.
package ingest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/memory"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/queue"
	"github.com/promlake/promlake/internal/remotewrite"
)

// Stage is the ingest stage of one process.
type Stage struct {
	set    Settings
	store  objstore.Store
	queue  queue.Sender // mode Buffered only
	memory *memory.Budget
	log    *slog.Logger
	now    func() time.Time
	met    *metrics
	ids    *idSource

	maxMessage int // bytes of a message

	inflight *budget         // MaxInflightBytes
	active   atomic.Int64    // tenants that wrote lately: len(tenants)
	known    atomic.Int64    // bytes of the label sets and metadata that all tenants have learned
	ctx      context.Context // ends when Close gives up waiting
	cancel   context.CancelFunc

	mu      sync.Mutex
	tenants map[string]*tenantIngest
	closing bool
	swept   time.Time // when idle tenants were looked for last
}

// Option is a part that only some modes need.
type Option func(*Stage)

// To is the queue that mode Buffered sends to.
func To(q queue.Sender) Option { return func(s *Stage) { s.queue = q } }

// Within is the memory of the process, from which that of the requests in flight is taken.
func Within(b *memory.Budget) Option { return func(s *Stage) { s.memory = b } }

// New returns a running stage.
func New(set Settings, store objstore.Store, reg prometheus.Registerer, log *slog.Logger, now func() time.Time, opts ...Option) (*Stage, error) {
	if err := set.Validate(); err != nil {
		return nil, fmt.Errorf("ingest settings: %w", err)
	}
	met, err := newMetrics(reg, set.Mode)
	if err != nil {
		return nil, fmt.Errorf("register ingest metrics: %w", err)
	}
	s := &Stage{
		set: set, store: store, log: log, now: now, met: met, ids: newIDSource(rand.Reader),
		tenants: map[string]*tenantIngest{}, maxMessage: queue.MaxMessageBytes,
	}
	for _, o := range opts {
		o(s)
	}
	s.inflight = newBudget(set.MaxInflightBytes, s.memory, met.inflightBytes)
	if set.Mode == Buffered && s.queue == nil {
		return nil, errors.New("ingest in mode buffered without a queue")
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Close refuses new requests, makes durable what was accepted, and lets the waiting requests be answered. If ctx ends first, flushes
// under way are cancelled and their requests get a retryable error.
func (s *Stage) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	all := make([]*tenantIngest, 0, len(s.tenants))
	for _, t := range s.tenants {
		all = append(all, t)
	}
	s.mu.Unlock()
	for _, t := range all {
		t.groups.close()
	}
	err := s.drain(ctx, all)
	s.cancel()
	for _, t := range all {
		<-t.done
	}
	return err
}

// drain waits until no tenant has requests under way.
func (s *Stage) drain(ctx context.Context, all []*tenantIngest) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, t := range all {
		for !t.groups.idle() {
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

// enter returns the tenant's collector side with a request announced on it.
func (s *Stage) enter(id string) (*tenantIngest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, errClosing
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
	return t, t.groups.enter()
}

// sweep forgets tenants that have been idle for long and have no flusher that does it. The caller holds s.mu.
func (s *Stage) sweep() {
	now := s.now()
	if s.set.Mode == Grouped || now.Sub(s.swept) < s.set.TenantIdle/8 && len(s.tenants) < s.set.MaxTenants {
		return
	}
	s.swept = now
	for id, t := range s.tenants {
		if now.Sub(t.used) >= s.set.TenantIdle && t.groups.retire() {
			delete(s.tenants, id)
			t.unlearn()
		}
	}
}

// forget drops an idle tenant, and says whether it did.
func (s *Stage) forget(t *tenantIngest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.groups.retire() {
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

func (s *Stage) newGeneration() *remotewrite.Generation {
	var seed [8]byte
	// crypto/rand.Read never fails (Go 1.24 and later).
	_, _ = rand.Read(seed[:])
	return remotewrite.NewGeneration(binary.LittleEndian.Uint64(seed[:]))
}

// idSource gives ULIDs. The milliseconds of those of next ascend strictly within the process, even
// when the clock stands or steps back: of two segments of one process that the store got in one tick
// of its clock, the later one has the higher rank, which counts the milliseconds but not all of the
// entropy.
type idSource struct {
	mu     sync.Mutex
	random io.Reader
	last   uint64 // ms
}

func newIDSource(r io.Reader) *idSource { return &idSource{random: r} }

// at returns a ULID of this time.
func (s *idSource) at(t time.Time) ulid.ULID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draw(ulid.Timestamp(t))
}

func (s *idSource) next(now time.Time) ulid.ULID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last+1, ulid.Timestamp(now))
	return s.draw(s.last)
}

// draw returns a random ULID of this time (ms). The caller holds s.mu.
func (s *idSource) draw(ms uint64) ulid.ULID {
	id, err := ulid.New(ms, s.random)
	if err != nil {
		panic(fmt.Sprintf("make an identifier: %v", err)) // crypto/rand does not fail, and the queue's times fit
	}
	return id
}
