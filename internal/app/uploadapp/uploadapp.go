// Package uploadapp takes blocks of Prometheus over HTTP, by Mimir's API for block uploads, and
// imports them.
//
//	start ─▶ files, one by one ─▶ finish ─▶ queue ─▶ import ─▶ complete
//
// The files of a block and the state of its upload (State) are objects below uploads/ of
// the tenant. finish swaps the state to validating: from then on the block is imported, by this
// process, or after its death by any that is asked to finish again or that starts; not by a fourth
// one, because the block may be what killed the others. The protocol of imports lets every sample
// count once, however often and by how many processes that is tried (package bulk).
package uploadapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Settings are those of uploads. The names are Mimir's where it has them. The tags are those of
// package settings.
type Settings struct {
	Enabled       bool          `name:"compactor.block-upload-enabled" default:"false" help:"Take blocks of Prometheus by Mimir's API for block uploads, as mimirtool backfill sends them. A quarter of --memory-limit is for their import." when:"Turn it on to import over HTTP."`
	MaxBytes      int64         `name:"compactor.block-upload-max-block-size-bytes" type:"bytes" default:"64GiB" min:"1" help:"Largest block, the sum of its files. It is kept in the store, and in --compactor.data-dir while it is imported." when:"Lower it if --compactor.data-dir is small."`
	MaxRange      time.Duration `name:"compactor.block-upload-max-block-range" type:"period" default:"31d" above:"0" help:"Longest time that a block may cover. The longest blocks of Prometheus cover 31 days." when:"Raise it for longer blocks."`
	MaxPending    int           `name:"compactor.block-upload-max-pending-blocks" default:"100" min:"0" max:"1000000" help:"Blocks of a tenant whose upload has begun and that are not imported yet, also failed ones. Another block is refused until one of them is imported or deleted. 0 is no limit." when:"Lower it to bound what a tenant keeps in the store. The runtime configuration sets it for single tenants."`
	DeletionDelay time.Duration `name:"compactor.block-upload-deletion-delay" default:"24h" min:"1m" help:"Time after its last change at which an upload that was not finished, or has failed, is deleted." when:"Raise it if uploads pause for longer."`

	// Tenants has the limits of single tenants; nil: all have MaxPending.
	Tenants Tenants `kong:"-"`
}

// Tenants are the limits of tenants.
type Tenants interface {
	// PendingUploads returns how many blocks a tenant may upload at once; 0: any number.
	PendingUploads(ctx context.Context, tenant string) int
}

const (
	// minShare is the least memory of an import, in bytes.
	minShare = 64 << 20
	// sharePart is the part of the process's memory that an import may use.
	sharePart = 4
	// unlimited stands for the memory of a process without a limit, in bytes.
	unlimited = 1 << 30
	// bodies is the number of files and meta.json that the process receives at once. Others wait.
	bodies = 4
	// sweepInterval is the time between two searches for uploads that nobody has finished.
	sweepInterval = time.Hour
)

// times are what tests shorten.
type times struct {
	// pauses are the waits before another attempt to import a block. The last one repeats while the
	// store does not take the state of the failure, either.
	pauses []time.Duration
	grace  time.Duration // of the rate of bodies
}

// stage implements process.Stage. When it is drained, it ends the import, none of whose uncommitted
// work is visible. Another process, or the next start of this one, continues it, and this attempt
// does not count.
type stage struct {
	process.Stage // sweeps and imports in the background

	set    Settings
	im     importapp.Settings // without a tenant
	store  objstore.Store
	memory *memory.Budget
	log    *slog.Logger
	now    func() time.Time
	times  times

	receiving *semaphore.Weighted // bodies that are received
	queue     queue
	known     sync.Map   // by key: the ETag of the state of a complete upload, which does not change
	starting  sync.Mutex // held while the uploads of a tenant are counted and one of any tenant begins

	ended   *prometheus.CounterVec
	limited *prometheus.CounterVec
}

// New returns the builder of a stage that answers
//
//	POST /api/v1/upload/block/{block}/start             body: meta.json
//	POST /api/v1/upload/block/{block}/files?path={path} body: a file
//	POST /api/v1/upload/block/{block}/finish
//	GET  /api/v1/upload/block/{block}/check
//
// and imports finished blocks, one at a time. im are the settings of the imports; the stage sets
// their memory, concurrency and tenant. It counts in the process's registry:
//
//	promlake_block_uploads_total{result}                     complete, failed, expired, unreadable
//	promlake_block_upload_limited_requests_total{limit}      blocks and bodies beyond a limit
func New(set Settings, im importapp.Settings) process.Builder {
	return build(set, im, times{pauses: []time.Duration{time.Second, 10 * time.Second, time.Minute}, grace: bodyGrace})
}

func build(set Settings, im importapp.Settings, t times) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		s := &stage{Stage: process.Idle{}, set: set, im: im, store: p.Store, memory: p.Memory, log: p.Logger, now: p.Now, times: t}
		s.ended = telemetry.Metrics{Registerer: p.Registry, Prefix: "promlake_"}.Counters("block_uploads_total", "Uploads of blocks that ended, by result: complete, failed, expired (nobody finished them within --compactor.block-upload-deletion-delay), and unreadable (their state in the store cannot be decoded, so they are not imported).", "result")
		s.limited = telemetry.Metrics{Registerer: p.Registry, Prefix: "promlake_"}.Counters("block_upload_limited_requests_total", "Uploads of blocks that were refused by a limit.", "limit")
		if !set.Enabled {
			return s, nil
		}
		// The import gets its part of the process's memory.
		limit := cmp.Or(s.memory.Limit(), unlimited)
		s.im.MemoryLimit, s.im.Concurrency = max(limit/sharePart, minShare), 1
		if s.im.MemoryLimit > limit/2 {
			return nil, fmt.Errorf("compactor.block-upload-enabled: %s is %d bytes, want at least %d, so that an import may use a part of it", memory.Flag, limit, 2*minShare)
		}
		s.receiving, s.queue.wake = semaphore.NewWeighted(bodies), make(chan struct{}, 1)
		s.Stage = process.InBackground(p, "the import of an upload", func(ctx context.Context) {
			var sweeping sync.WaitGroup
			sweeping.Go(func() { s.sweeping(ctx) })
			for u, ok := s.queue.take(ctx); ok; u, ok = s.queue.take(ctx) {
				s.attempt(ctx, u)
			}
			sweeping.Wait()
		})
		return s, nil
	}
}

// Routes implements process.Stage. Without --compactor.block-upload-enabled they refuse.
func (s *stage) Routes() []process.Route {
	const base = "/api/v1/upload/block/{block}/"
	var all []process.Route
	for _, r := range []struct {
		method, name string
		handle       func(http.ResponseWriter, *http.Request, key.Upload) error
	}{
		{http.MethodPost, "start", s.start},
		{http.MethodPost, "files", s.file},
		{http.MethodPost, "finish", s.finish},
		{http.MethodGet, "check", s.check},
	} {
		all = append(all, process.Route{Pattern: r.method + " " + base + r.name, Name: base + r.name, Access: auth.Write, Handler: s.handler(r.handle)})
	}
	return all
}

// refusal is an error with its HTTP status.
type refusal struct {
	status int
	error
}

// Unwrap returns the cause.
func (r *refusal) Unwrap() error { return r.error }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Errorf(format, args...)}
}

// status returns the HTTP status for an error.
func status(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status
	}
	if l, ok := errors.AsType[*LimitError](err); ok {
		if l.Limit == LimitPending {
			return http.StatusTooManyRequests // until others are imported
		}
		return http.StatusBadRequest
	}
	switch {
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrMissing):
		return http.StatusBadRequest
	case errors.Is(err, ErrExpired):
		return http.StatusUnprocessableEntity
	}
	return http.StatusServiceUnavailable
}
