// Package doctorapp reads a store, reports its damaged objects, and can make them no longer live.
package doctorapp

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Settings configure an examination.
type Settings struct {
	Tenant     string // "" is all
	Verify     bool   // read every byte of the live objects, and not only what describes them
	Quarantine bool   // take damaged objects out of what counts, and keep their bytes
	MaxObjects int    // a tenant with more live objects is a TooManyError; 0: no limit
}

// TooManyError reports a tenant whose examination would read more objects than the settings allow.
type TooManyError struct {
	Tenant         string
	Objects, Limit int
}

// Error implements error.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("tenant %s has %d live objects, and one request may examine %d (--web.doctor-max-objects): run promlake doctor --tenant %s", e.Tenant, e.Objects, e.Limit, e.Tenant)
}

// concurrency bounds the objects that are read at once: a segment is in memory as a whole.
const concurrency = 4

// Examine reads the manifest of each tenant and the live objects that it and the listing name.
// Damage is part of the report; an error means that the examination did not finish.
func Examine(ctx context.Context, store objstore.Store, s Settings) (Report, error) {
	tenants := []string{s.Tenant}
	if s.Tenant == "" {
		var err error
		if tenants, err = catalog.Tenants(ctx, store); err != nil {
			return Report{}, err
		}
	}
	r := Report{Verified: s.Verify, Tenants: make([]Tenant, 0, len(tenants))}
	for _, name := range tenants {
		d := doctor{store: store, settings: s, tenant: name}
		t, err := d.examine(ctx)
		if err != nil {
			return Report{}, fmt.Errorf("examine tenant %s: %w", name, err)
		}
		r.Tenants = append(r.Tenants, t)
	}
	return r, nil
}

// doctor examines one tenant.
type doctor struct {
	store    objstore.Store
	settings Settings
	tenant   string
}

func (d *doctor) examine(ctx context.Context) (Tenant, error) {
	t := Tenant{Tenant: d.tenant, Damaged: []Damaged{}}
	if _, _, err := catalog.ReadManifest(ctx, d.store, d.tenant); err != nil {
		if ctx.Err() != nil {
			return t, err
		}
		t.Error = err.Error()
		return t, nil
	}
	snap, err := catalog.Take(ctx, d.store, d.tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return t, fmt.Errorf("take snapshot: %w", err)
	}
	t.Segments, t.Blocks = len(snap.Segments), len(snap.Blocks)
	sources := make([]source, 0, len(snap.Segments)+len(snap.Blocks))
	for i := range snap.Segments {
		sources = append(sources, source{segment: &snap.Segments[i]})
	}
	for i := range snap.Blocks {
		sources = append(sources, source{block: &snap.Blocks[i]})
	}
	if most := d.settings.MaxObjects; most > 0 && len(sources) > most {
		return t, &TooManyError{d.tenant, len(sources), most}
	}
	found := make([]*Damaged, len(sources))
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	for i, src := range sources {
		g.Go(telemetry.Guard(func() error {
			n, damaged, err := d.check(gctx, src)
			mu.Lock()
			defer mu.Unlock()
			t.Bytes += n
			found[i] = damaged
			return err
		}))
	}
	if err := g.Wait(); err != nil {
		return t, err
	}
	for _, f := range found {
		if f == nil {
			continue
		}
		if d.settings.Quarantine && !f.NotUnderstood {
			if err := d.quarantine(ctx, f); err != nil {
				return t, fmt.Errorf("quarantine %s: %w", f.Object, err)
			}
		}
		t.Damaged = append(t.Damaged, *f)
	}
	return t, nil
}
