package inspectapp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Inspect describes the tenants of a store, or one of them if tenant is not "". The compactor's
// next jobs are planned with the settings s at the time now.
func Inspect(ctx context.Context, store objstore.Store, tenant string, s compact.Settings, now time.Time) (Report, error) {
	s, err := s.WithDefaults()
	if err != nil {
		return Report{}, err
	}
	tenants := []string{tenant}
	if tenant == "" {
		if tenants, err = catalog.Tenants(ctx, store); err != nil {
			return Report{}, err
		}
	}
	r := Report{Tenants: make([]Tenant, 0, len(tenants))}
	for _, name := range tenants {
		t, err := inspectTenant(ctx, store, name, s.Policy, now)
		if err != nil {
			return Report{}, fmt.Errorf("inspect tenant %s: %w", name, err)
		}
		r.Tenants = append(r.Tenants, t)
	}
	return r, nil
}

// attempts is how often a tenant is described anew because an object was deleted meanwhile. All
// objects of a snapshot stay for the deletion delay, so even a second attempt is rare.
const attempts = 3

func inspectTenant(ctx context.Context, store objstore.Store, name string, policy plan.Policy, now time.Time) (t Tenant, err error) {
	for range attempts {
		if t, err = describe(ctx, store, name, policy, now); !errors.Is(err, objstore.ErrNotFound) {
			return t, err
		}
	}
	return t, err
}

// describe lists the objects before it takes the snapshot, as every reader does: each object that
// is live in the snapshot and older than the list is in the list.
func describe(ctx context.Context, store objstore.Store, name string, policy plan.Policy, now time.Time) (Tenant, error) {
	l := &listing{segments: map[catalog.SegmentID]int64{}, blocks: map[catalog.BlockID]Pile{}}
	for prefix, add := range map[string]func(objstore.Object){key.SegmentsPrefix(name): l.addSegment, key.BlocksPrefix(name): l.addFile} {
		for obj, err := range store.List(ctx, prefix, "") {
			if err != nil {
				return Tenant{}, fmt.Errorf("list %s: %w", prefix, err)
			}
			add(obj)
		}
	}
	snap, err := catalog.Take(ctx, store, name, key.MinTime, key.MaxTime)
	if err != nil {
		return Tenant{}, fmt.Errorf("take snapshot: %w", err)
	}
	t := Tenant{
		Tenant: name, Manifest: manifest(&snap.Manifest), Garbage: l.garbage(&snap.Manifest), Blocks: []Block{},
		Splits: splits(snap.Manifest.Splits), Tombstones: tombstones(snap.Manifest.Tombstones), Next: []string{},
	}
	for _, job := range plan.Jobs(policy, now, snap) {
		t.Next = append(t.Next, job.String())
	}
	if err := t.readSegments(ctx, store, snap.Segments); err != nil {
		return Tenant{}, err
	}
	return t, t.readBlocks(ctx, store, snap.Manifest.Blocks)
}

func manifest(m *catalog.Manifest) Manifest {
	if m.Generation == 0 {
		return Manifest{}
	}
	return Manifest{Generation: m.Generation, ID: m.ID.String(), Time: new(ulid.Time(m.ID.Time()).UTC())}
}

func splits(all []catalog.Split) []Split {
	out := make([]Split, 0, len(all))
	for _, s := range all {
		out = append(out, Split{ID: s.ID.String(), Level: s.Level.String(), Window: moments(int64(s.Window)), Done: len(s.Done), Of: s.Of})
	}
	return out
}

func tombstones(all []catalog.Tombstone) []Tombstone {
	out := make([]Tombstone, 0, len(all))
	for _, t := range all {
		texts := make([]string, len(t.Matchers))
		for i, m := range t.Matchers {
			texts[i] = m.Name + m.Type + strconv.Quote(m.Value)
		}
		out = append(out, Tombstone{
			ID: t.ID.String(), Time: ulid.Time(t.ID.Time()).UTC(), Match: "{" + strings.Join(texts, ", ") + "}", MinTime: moments(t.MinT), MaxTime: moments(t.MaxT),
		})
	}
	return out
}

// moments converts ms, clipped to what keys and RFC 3339 can name.
func moments(ms int64) time.Time {
	return time.UnixMilli(min(max(ms, key.MinTime), key.MaxTime)).UTC()
}

// listing is what lies under a tenant's prefixes of data.
type listing struct {
	segments map[catalog.SegmentID]int64 // bytes
	blocks   map[catalog.BlockID]Pile
	foreign  Pile
}

func (p *Pile) add(bytes int64) { p.Objects, p.Bytes = p.Objects+1, p.Bytes+bytes }

func (p *Pile) join(o Pile) { p.Objects, p.Bytes = p.Objects+o.Objects, p.Bytes+o.Bytes }

func (l *listing) addSegment(obj objstore.Object) {
	s, err := key.ParseSegment(obj.Key)
	if err != nil {
		l.foreign.add(obj.Size)
		return
	}
	l.segments[catalog.SegmentIDOf(s)] = obj.Size
}

func (l *listing) addFile(obj objstore.Object) {
	b, _, err := key.ParseBlockFile(obj.Key)
	if err != nil {
		l.foreign.add(obj.Size)
		return
	}
	id := catalog.BlockID{Level: b.Level, Window: b.Window, ID: b.ID}
	f := l.blocks[id]
	f.add(obj.Size)
	l.blocks[id] = f
}

// garbage sorts the listed objects that are not live by their state in the manifest.
func (l *listing) garbage(m *catalog.Manifest) Garbage {
	g := Garbage{Foreign: l.foreign}
	for _, c := range m.Consumed {
		if n, ok := l.segments[c.SegmentID]; ok {
			g.Consumed.add(n)
		}
	}
	for _, r := range m.Retired {
		g.Retired.join(l.blocks[r.BlockID])
	}
	named := m.BlockIDs()
	for id, f := range l.blocks {
		if !named[id] {
			g.Unlisted.join(f)
		}
	}
	return g
}
