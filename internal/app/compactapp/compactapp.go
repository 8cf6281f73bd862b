// Package compactapp connects the compaction stage to a process: its settings, its schedule, and
// one cycle on request. It publishes Iceberg tables over the blocks.
package compactapp

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/internal/store/recent"
)

// Background returns the builder of a stage that, once the process is ready, runs one cycle after
// another with a pause of interval between them. It takes the segments that kept returns from
// memory; nil: none. scrapes means that the process stores samples that it has scraped.
func Background(kept func(process.Parts) *recent.Segments, s Settings, scrapes bool, interval time.Duration) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		if kept != nil {
			s.Recent = kept(p)
		}
		if scrapes {
			flags.Replace(p.Flags, "compactor.min-part-segments", &s.MinPartSegments, segmentsOfScrapes)
			flags.Replace(p.Flags, "compactor.part-bytes", &s.PartBytes, bytesOfScrapes)
		}
		c, err := newStage(s, p)
		if err != nil {
			return nil, err
		}
		// At the end the running cycle is cancelled; none of its uncommitted work is visible.
		return process.InBackground(p, "compaction", func(ctx context.Context) {
			// The stage logs its errors. The process continues after one: the source objects are
			// still live, and the next cycle plans anew.
			process.Repeat(ctx, interval, func() { _, _ = c.Cycle(ctx) })
		}), nil
	}
}

func newStage(s Settings, p process.Parts) (*compact.Stage, error) {
	c, err := compact.New(s.Stage(), p.Store, p.Registry, p.Logger, p.Now)
	if err != nil {
		return nil, fmt.Errorf("start compaction: %w", err)
	}
	return c, nil
}

// Driven is a compaction stage that its owner drives.
type Driven struct {
	stage  *compact.Stage
	totals Totals
	end    func() error
}

// Open returns a compaction stage over a store that exists, for all of its tenants or, if tenant is
// not "", for that one. If p enables it, it first checks the store. It adds ahead to the time of
// the store's clock. The caller closes it.
func Open(ctx context.Context, p process.Settings, tenant string, s Settings, logger *slog.Logger, ahead time.Duration) (*Driven, error) {
	d := &Driven{}
	_, end, err := process.Open(ctx, p, logger, func(_ context.Context, parts process.Parts) (_ process.Stage, err error) {
		if p.CheckStore {
			if err := probe.Check(ctx, parts.Store); err != nil {
				return nil, err
			}
		}
		if ahead != 0 {
			parts.Store = objstore.Over(parts.Store, shifted{parts.Store, ahead})
		}
		if tenant != "" {
			parts.Store = only(parts.Store, tenant)
		}
		d.stage, err = newStage(s, parts)
		return process.Idle{}, err
	})
	if err != nil {
		return nil, err
	}
	d.end = end
	return d, nil
}

// Cycle executes all jobs that are due now.
func (d *Driven) Cycle(ctx context.Context) error {
	r, err := d.stage.Cycle(ctx)
	d.totals.add(&r)
	return err
}

// UntilIdle runs cycles until no job is due.
func (d *Driven) UntilIdle(ctx context.Context, progress compact.Progress) error {
	return d.stage.UntilIdle(ctx, progress, d.totals.add)
}

// Totals returns the sums of the finished work, including that of a failed cycle.
func (d *Driven) Totals() Totals { return d.totals }

// Close releases the stage. None of its methods may run.
func (d *Driven) Close() error { return d.end() }

// shifted is a store whose clock is ahead.
type shifted struct {
	objstore.Store
	ahead time.Duration
}

// Now implements objstore.Store.
func (s shifted) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Now(ctx)
	return now.Add(s.ahead), err
}

// ListExcept implements objstore.ExceptLister.
func (s shifted) ListExcept(ctx context.Context, prefix, startAfter string, skip func(key string) bool) iter.Seq2[objstore.Object, error] {
	return objstore.ListExcept(ctx, s.Store, prefix, startAfter, skip)
}

// DeleteAll implements objstore.BatchDeleter.
func (s shifted) DeleteAll(ctx context.Context, keys []string) (int, error) {
	return objstore.DeleteAll(ctx, s.Store, keys)
}

// view is a store in which one tenant's objects are all that is listed.
type view struct {
	objstore.Store
	prefix string // of the tenant's keys
}

// only returns a view of store that lists no objects but the tenant's. It is an objstore.Local
// exactly if store is one.
func only(store objstore.Store, tenant string) objstore.Store {
	v := view{Store: store, prefix: key.TenantPrefix(tenant)}
	if l, ok := store.(objstore.Local); ok {
		return struct {
			view
			objstore.Local
		}{v, l}
	}
	return v
}

// List implements objstore.Store.
func (v view) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	switch {
	case strings.HasPrefix(prefix, v.prefix):
		return v.Store.List(ctx, prefix, startAfter)
	case strings.HasPrefix(v.prefix, prefix):
		return v.Store.List(ctx, v.prefix, startAfter)
	default:
		return func(func(objstore.Object, error) bool) {}
	}
}

// ListFolders implements objstore.Store. It asks for nothing but the tenant's objects.
func (v view) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	below, ok := strings.CutPrefix(v.prefix, prefix)
	if !ok || below == "" {
		return v.Store.ListFolders(ctx, prefix)
	}
	return func(yield func(string, error) bool) {
		for _, err := range v.List(ctx, prefix, "") { // one object is enough
			name, _, _ := strings.Cut(below, "/")
			yield(prefix+name+"/", err)
			return
		}
	}
}

// DeleteAll implements objstore.BatchDeleter.
func (v view) DeleteAll(ctx context.Context, keys []string) (int, error) {
	return objstore.DeleteAll(ctx, v.Store, keys)
}
