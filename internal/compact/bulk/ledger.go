package bulk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/objstore"
)

// errImported reports a unit that other imports have done, in whole or in part.
var errImported = errors.New("another import has done it")

// errBeside reports an import of the same inputs that began later with shorter windows.
var errBeside = errors.New("another import of the same inputs runs with a lower --level: repeat this one when that has ended")

// ledger is what is known of imports while one runs. Every commit of an import sees all others:
//
//	commit (the manifest has the import) ─▶ record ─▶ a later commit (the manifest has it no more)
//
// So a manifest, and the records that were listed after it was read, have every import that was
// committed before the manifest.
type ledger struct {
	store   objstore.Store
	tenant  string
	restore bool

	mu       sync.Mutex
	past     Past
	recorded map[ulid.ULID]bool // blocks whose records are in the store
}

// records returns the imports that count beside the manifest m, which was just read.
func (l *ledger) records(ctx context.Context, m catalog.Manifest) ([]Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.past.read(ctx, l.store, l.tenant, m); err != nil {
		return nil, err
	}
	kept, lost := l.past.sorted()
	if !l.restore {
		kept = append(kept, lost...)
	}
	return kept, nil
}

// settle writes the records of the imports that the manifest has.
func (l *ledger) settle(ctx context.Context) error {
	m, _, err := catalog.ReadManifest(ctx, l.store, l.tenant)
	for i := 0; i < len(m.Imports) && err == nil; i++ {
		err = l.record(ctx, m.Imports[i])
	}
	return err
}

// record writes the record of an import that is committed.
func (l *ledger) record(ctx context.Context, x catalog.Import) error {
	err := keep(ctx, l.store, l.tenant, x.Block, x)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.recorded[x.Block] = true
	}
	return err
}

// written returns the blocks whose records are in the store.
func (l *ledger) written() []ulid.ULID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Keys(l.recorded), ulid.ULID.Compare)
}

// left returns the unit without the inputs that others have imported. errTooLarge: they have
// imported some for a part of the series. errBeside: for a part of the window.
func (l *ledger) left(ctx context.Context, m catalog.Manifest, p *Plan, u *Unit) (Unit, error) {
	out := *u
	records, err := l.records(ctx, m)
	if err != nil {
		return out, err
	}
	out.Inputs = nil
	for _, i := range u.Inputs {
		id := p.Inputs[i].ID
		if slices.ContainsFunc(records, func(r Record) bool { return r.has(id, u) }) {
			continue
		}
		if at := slices.IndexFunc(records, func(r Record) bool { return r.part(id, u) }); at >= 0 {
			if r := &records[at]; int64(r.Window) > u.from() || r.Level.End(r.Window) < u.to() {
				return out, fmt.Errorf("%w: input %s, %s %s", errBeside, id, r.Level, r.Window)
			}
			return out, errTooLarge
		}
		out.Inputs = append(out.Inputs, i)
	}
	return out, nil
}
