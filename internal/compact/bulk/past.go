package bulk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Past is what was imported into a tenant before.
type Past struct {
	Records     map[string]Record // by key, or by block if the manifest has it
	Quarantined []catalog.BlockID // blocks that were damaged, and do not count any more

	seen time.Time // of the manifest that was read last; zero: none
}

// ReadPast reads the past of a tenant. It writes nothing.
func ReadPast(ctx context.Context, store objstore.Store, tenant string) (Past, error) {
	p := Past{Records: map[string]Record{}}
	// An import leaves the manifest when its record is there, so the manifest is read first.
	m, _, err := catalog.ReadManifest(ctx, store, tenant)
	if err != nil {
		return p, err
	}
	if _, err := p.read(ctx, store, tenant, m); err != nil {
		return p, err
	}
	prefix := key.Quarantine + key.BlocksPrefix(tenant)
	for obj, err := range store.List(ctx, prefix, "") {
		if err != nil {
			return p, fmt.Errorf("list quarantined blocks of tenant %s: %w", tenant, err)
		}
		if b, _, err := key.ParseBlockFile(obj.Key[len(key.Quarantine):]); err == nil {
			p.Quarantined = append(p.Quarantined, catalog.BlockID{Level: b.Level, Window: b.Window, ID: b.ID})
		}
	}
	p.Quarantined = slices.Compact(p.Quarantined) // a block has several files
	return p, nil
}

func (p Past) clone() Past {
	records := map[string]Record{}
	maps.Copy(records, p.Records)
	return Past{records, p.Quarantined, p.seen}
}

// readers is the number of records that are read at once.
const readers = 16

// read adds the imports of a manifest, and the records of all imports that were committed between
// the manifest of the last call and this one. Such a commit came after a manifest that is not older
// than that of the last call, and its block is not older than catalog.MaxJobAge by then. It returns
// what it has added, in the order of keys.
func (p *Past) read(ctx context.Context, store objstore.Store, tenant string, m catalog.Manifest) ([]Record, error) {
	added := map[string]Record{}
	for _, x := range m.Imports {
		if k := key.Import(tenant, x.Block); !p.has(k) {
			added[k] = Record{recordVersion, x}
		}
	}
	var keys []string
	for obj, err := range store.List(ctx, key.ImportsPrefix(tenant), p.after(tenant)) {
		if err != nil {
			return nil, fmt.Errorf("list imports of tenant %s: %w", tenant, err)
		}
		if _, _, err := key.ParseImport(obj.Key); err != nil {
			continue
		}
		if _, ok := added[obj.Key]; !ok && !p.has(obj.Key) {
			keys = append(keys, obj.Key)
		}
	}
	out := make([]Record, len(keys))
	if err := telemetry.Each(ctx, readers, keys, func(ctx context.Context, i int, k string) (err error) {
		out[i], err = readRecord(ctx, store, k)
		return err
	}); err != nil {
		return nil, err
	}
	for i, k := range keys {
		added[k] = out[i]
	}
	maps.Copy(p.Records, added)
	p.seen = m.Time()
	return byKey(added), nil
}

func (p *Past) has(k string) bool {
	_, ok := p.Records[k]
	return ok
}

// byKey returns records in the order of their keys.
func byKey(records map[string]Record) []Record {
	out := make([]Record, 0, len(records))
	for _, k := range slices.Sorted(maps.Keys(records)) {
		out = append(out, records[k])
	}
	return out
}

// after returns a key before those of the records that read has not seen.
func (p *Past) after(tenant string) string {
	var oldest ulid.ULID
	if err := oldest.SetTime(ulid.Timestamp(p.seen.Add(-catalog.MaxJobAge - time.Millisecond))); err != nil || p.seen.UnixMilli() < 2*catalog.MaxJobAge.Milliseconds() {
		return ""
	}
	return key.Import(tenant, oldest)
}

// divide returns the records that count, and those that are lost.
func (p *Past) divide() (kept, lost []Record) {
	for _, r := range byKey(p.Records) {
		if p.lost(&r) {
			lost = append(lost, r)
		} else {
			kept = append(kept, r)
		}
	}
	return kept, lost
}

// lost reports whether the block of a record, or one that was made of it, is in quarantine: a block
// that is not older and shares a time of the window.
func (p *Past) lost(r *Record) bool {
	return r.Block != (ulid.ULID{}) && slices.ContainsFunc(p.Quarantined, func(q catalog.BlockID) bool {
		return r.Overlaps(q.Level, q.Window) && cmp.Compare(q.ID.Time(), r.Block.Time()) >= 0
	})
}

// index has the records that name an input, by input.
type index map[string][]Record

// indexOf returns the index of records.
func indexOf(records ...[]Record) index {
	x := index{}
	for _, part := range records {
		for _, r := range part {
			x.add(r)
		}
	}
	return x
}

func (x index) add(r Record) {
	for _, input := range r.Inputs {
		x[input] = append(x[input], r)
	}
}
