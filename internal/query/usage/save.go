package usage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	// maxTries is how often a save is tried while other processes save counts of the same tenant.
	maxTries = 16
	// savesAtOnce is the number of tenants whose counts are saved at once.
	savesAtOnce = 8
	// minPause is the shortest time that a save after a request gets, and maxPause the longest.
	minPause, maxPause = 100 * time.Millisecond, 2 * time.Second
)

var errContended = errors.New("the object is changed by too many processes at once")

// Save adds what was counted to the objects in the store. What cannot be saved is logged, and saved
// the next time.
func (c *Counter) Save(ctx context.Context) {
	c.saving.Lock()
	defer c.saving.Unlock()
	c.save(ctx)
}

// MaybeSave saves if the last save, or the start, is at least an interval ago. It takes two seconds
// at most, and at most a tenth of the time until ctx's deadline.
func (c *Counter) MaybeSave(ctx context.Context) {
	if c.settings.Interval == 0 || c.now().UnixMilli()-c.tried.Load() < c.settings.Interval.Milliseconds() {
		return
	}
	pause := maxPause
	if end, ok := ctx.Deadline(); ok {
		pause = min(pause, time.Until(end)/10)
	}
	if pause < minPause || !c.saving.TryLock() {
		return
	}
	defer c.saving.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	c.save(ctx)
}

// Run saves once per interval until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	tick := time.NewTicker(c.settings.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.Save(ctx)
		}
	}
}

// save saves all batches. saving is held.
func (c *Counter) save(ctx context.Context) {
	c.tried.Store(c.now().UnixMilli())
	// What could not be saved before is tried again, with the batches of all other tenants.
	c.mu.Lock()
	for tenant, b := range c.fresh {
		if c.frozen[tenant] == nil {
			c.frozen[tenant] = b
			delete(c.fresh, tenant)
		}
	}
	c.from = c.now().UnixMilli()
	pending := maps.Clone(c.frozen)
	c.mu.Unlock()
	var mu sync.Mutex
	failed, last := 0, error(nil)
	g := &errgroup.Group{}
	g.SetLimit(savesAtOnce)
	for tenant, b := range pending {
		g.Go(func() error {
			err := telemetry.Guard(func() error { return c.saveOne(ctx, tenant, b) })()
			if err == nil {
				c.saves.WithLabelValues("ok").Inc()
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.frozen, tenant)
				c.used -= b.used
				return nil
			}
			c.saves.WithLabelValues("failed").Inc()
			mu.Lock()
			defer mu.Unlock()
			failed, last = failed+1, fmt.Errorf("save counts of queries of tenant %s: %w", tenant, err)
			return nil
		})
	}
	_ = g.Wait() // no function fails
	if failed > 0 {
		c.log.Warn("counts of queries could not be saved; the next save has them", "tenants", failed, "err", last)
	}
}

// saveOne adds a frozen batch to the tenant's object by compare-and-swap, unless it is there. The
// counts of a tenant without objects are dropped: its name may be made up. An object that is
// damaged is replaced.
func (c *Counter) saveOne(ctx context.Context, tenant string, b *batch) error {
	for range maxTries {
		doc, etag, err := c.read(ctx, tenant)
		switch {
		case errors.Is(err, objstore.ErrNotFound):
			if known, err := c.known(ctx, tenant); err != nil || !known {
				return err
			}
			doc.Since = b.from
		case errors.Is(err, ErrVersion):
			return err
		case etag != "" && err != nil:
			c.log.Error("the counts of queries are damaged and will begin anew", "tenant", tenant, "object", key.Usage(tenant), "err", err)
			doc.Since = b.from
		case err != nil:
			return err
		case slices.Contains(doc.Saves, b.id), b.size() == 0 && len(b.spent) == 0 && b.lost <= doc.Since:
			return nil
		}
		next := doc.with(b, c.now().UnixMilli(), c.settings.Bytes)
		body, err := checksum.Marshal(next)
		if err != nil {
			return err
		}
		_, err = c.store.Put(ctx, key.Usage(tenant), bytes.NewReader(body), objstore.Condition{IfAbsent: etag == "", IfMatch: etag})
		if !errors.Is(err, objstore.ErrPrecondition) {
			return err
		}
	}
	return errContended
}

// known reports whether the store has any object of a tenant.
func (c *Counter) known(ctx context.Context, tenant string) (bool, error) {
	for _, err := range c.store.List(ctx, key.TenantPrefix(tenant), "") {
		return err == nil, err
	}
	return false, nil
}

// read returns a tenant's object and its version. Errors: objstore.ErrNotFound; ErrVersion; others
// with a version mean that the object is damaged, those without are of the store.
func (c *Counter) read(ctx context.Context, tenant string) (doc document, etag string, err error) {
	k := key.Usage(tenant)
	b, o, err := objstore.ReadAll(ctx, c.store, k)
	if err != nil {
		return document{}, "", err
	}
	if doc, err = decode(b); err != nil {
		return document{}, o.ETag, fmt.Errorf("read %s: %w", k, err)
	}
	return doc, o.ETag, nil
}
