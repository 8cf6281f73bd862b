package bulk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
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
	known    index              // of past: what counts
	recorded map[ulid.ULID]bool // blocks whose records are in the store
}

// newLedger returns the ledger of an import that begins with a past. What is in quarantine does not
// count with restore.
func newLedger(store objstore.Store, tenant string, past Past, restore bool) *ledger {
	l := &ledger{store: store, tenant: tenant, restore: restore, past: past.clone(), known: index{}, recorded: map[ulid.ULID]bool{}}
	l.learn(byKey(past.Records))
	return l
}

// learn adds records to what is known. The caller holds mu, or has the only reference.
func (l *ledger) learn(records []Record) {
	for _, r := range records {
		if !l.restore || !l.past.lost(&r) {
			l.known.add(r)
		}
	}
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

// left returns the unit without the inputs that others have imported before the manifest m, which
// was just read. errTooLarge: they have imported some for a part of the series. errBeside: for a
// part of the window.
func (l *ledger) left(ctx context.Context, m catalog.Manifest, p *Plan, u *Unit) (Unit, error) {
	out := *u
	out.Inputs = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	committed, err := l.past.read(ctx, l.store, l.tenant, m)
	if err != nil {
		return out, err
	}
	l.learn(committed)
	for _, i := range u.Inputs {
		id := p.Inputs[i].ID
		records := l.known[id]
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

// recordVersion is the version of records that this package writes and reads.
const recordVersion = 1

// Record says which inputs are imported, for a part of the series in one window. Its object is
// written after the commit of the block (schemas/keys.md); until then the manifest has the import.
type Record struct {
	Version int `json:"version"`
	catalog.Import
}

// has reports whether the samples of an input in a unit are imported.
func (r *Record) has(input string, u *Unit) bool {
	return int64(r.Window) <= u.from() && r.Level.End(r.Window) >= u.to() && u.Slice.Within(r.Slice) && r.names(input)
}

// part reports whether the samples of an input in the unit are imported for some of its series or
// times.
func (r *Record) part(input string, u *Unit) bool {
	return r.Overlaps(u.Level, u.Window) && r.Slice.Shares(u.Slice) && !r.has(input, u) && r.names(input)
}

func (r *Record) names(input string) bool {
	_, ok := slices.BinarySearch(r.Inputs, input)
	return ok
}

// readRecord reads the record under a key.
func readRecord(ctx context.Context, store objstore.Store, k string) (r Record, err error) {
	b, _, err := objstore.ReadAll(ctx, store, k)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("decode %s: %w", k, err)
	}
	if r.Version != recordVersion {
		return r, fmt.Errorf("decode %s: version %d, this program reads %d", k, r.Version, recordVersion)
	}
	return r, nil
}

// keep writes the record of an import. That another process was first does not matter.
func keep(ctx context.Context, store objstore.Store, tenant string, id ulid.ULID, x catalog.Import) error {
	b, err := json.Marshal(Record{recordVersion, x})
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	_, err = store.Put(ctx, key.Import(tenant, id), bytes.NewReader(append(b, '\n')), objstore.Condition{IfAbsent: true})
	if err != nil && !errors.Is(err, objstore.ErrPrecondition) {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}
