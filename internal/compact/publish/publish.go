// Package publish keeps the metadata of Iceberg tables beside the blocks of a tenant, so that other
// engines read the blocks' files without a copy:
//
//	v1/<tenant>/iceberg/<table>/metadata/v<n>.metadata.json   the table; the newest n counts
//	                                     version-hint.text    the newest n, or a little less
//	                                     <ulid>-list.avro     the manifests of a snapshot
//	                                     <day>-<digest>-<n>-<ulid>.avro
//	                                                          the data files of a UTC day, n of
//	                                                          whose blocks are left out
//
// This is the layout of Iceberg's file system tables ("Hadoop tables"). The commit point is the put
// of the next v<n>.metadata.json on condition that it does not exist. Everything else is written
// before it under new keys, except the hint, which is only raised, by compare-and-swap.
//
// A publication reads the manifest (package catalog), chooses the blocks (plan.go), and writes one
// Iceberg manifest for each day whose blocks differ from those published before. It deletes
// metadata that no version younger than Settings.Keep needs, and never a file of a block.
package publish

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/iceberg"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// ErrAhead: the tables show a later state of the tenant than its manifest, because an older
// manifest was restored.
var ErrAhead = errors.New("the published tables are ahead of the manifest")

// errRaced: an object changed while it was read, or another publication was faster.
var errRaced = errors.New("the store changed meanwhile")

// attempts bounds the attempts of one publication that others precede.
const attempts = 6

// Settings are what a Publisher needs beside the store.
type Settings struct {
	// Location returns the URI under which other engines find the object of a key.
	Location func(key string) string
	// Keep is how long metadata is kept after it was replaced, if that is longer than the constant
	// Keep.
	Keep time.Duration
	// Entropy makes identifiers distinct. Default crypto/rand.
	Entropy io.Reader
}

// Publisher publishes the tenants of a store.
type Publisher struct {
	store objstore.Store
	set   Settings
}

// New returns a publisher for store.
func New(store objstore.Store, s Settings) *Publisher {
	s.Keep, s.Entropy = max(s.Keep, Keep), cmp.Or(s.Entropy, rand.Reader)
	return &Publisher{store: store, set: s}
}

// Report is the result of a publication.
type Report struct {
	Tenant     string        `json:"tenant"`
	Generation uint64        `json:"generation"` // of the manifest that the tables show
	Blocks     int           `json:"blocks"`     // whose rows are in the tables
	Waiting    int           `json:"waiting"`    // live blocks that are not, because compaction will merge them
	Old        int           `json:"old"`        // live blocks that are not, because an earlier version wrote them
	Tombstones int           `json:"tombstones"` // deletions that are not applied to all blocks yet
	Tables     []TableReport `json:"tables"`
}

// TableReport is the result of a publication for one table.
type TableReport struct {
	Name     string `json:"name"`
	Metadata string `json:"metadata"` // URI of the newest metadata; "" if there is none, for lack of blocks
	Version  int64  `json:"version"`  // of the metadata
	Files    int64  `json:"files"`    // data files
	Rows     int64  `json:"rows"`
	Changed  bool   `json:"changed"` // this publication made the version
}

// Publish brings the tables of a tenant to the state of its manifest. It may run at any time and in
// several processes at once. After an error each table has either its former state or the new one.
func (p *Publisher) Publish(ctx context.Context, tenant string) (Report, error) {
	for n := 1; ; n++ {
		r, err := p.publish(ctx, tenant)
		if n == attempts || !errors.Is(err, errRaced) && !errors.Is(err, ErrAhead) {
			if err != nil {
				return r, fmt.Errorf("publish tenant %s: %w", tenant, err)
			}
			return r, nil
		}
		if err := objstore.AfterRace(ctx, n); err != nil {
			return r, fmt.Errorf("publish tenant %s: %w", tenant, err)
		}
	}
}

func (p *Publisher) publish(ctx context.Context, tenant string) (Report, error) {
	now, err := p.store.Now(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("read the store's clock: %w", err)
	}
	m, _, err := catalog.ReadManifest(ctx, p.store, tenant)
	if err != nil {
		return Report{}, fmt.Errorf("read manifest: %w", err)
	}
	chosen, others := choose(m.Blocks)
	r := Report{Tenant: tenant, Generation: m.Generation, Waiting: len(others), Tombstones: len(m.Tombstones)}
	s := state{Publisher: p, tenant: tenant, now: now.UnixMilli(), generation: m.Generation, metas: map[catalog.BlockID]*block.Meta{}}
	for i := range tables {
		v, err := s.openTable(ctx, &tables[i])
		if err != nil {
			return r, fmt.Errorf("table %s: %w", tables[i].name, err)
		}
		t, err := v.update(ctx, daysOf(chosen))
		if err != nil {
			return r, fmt.Errorf("table %s: %w", tables[i].name, err)
		}
		r.Tables = append(r.Tables, t)
		r.Old = max(r.Old, v.old)
	}
	r.Blocks = len(chosen) - r.Old
	return r, nil
}

// state is what the tables of one attempt share.
type state struct {
	*Publisher
	tenant     string
	now        int64 // ms, store's clock
	generation uint64
	metas      map[catalog.BlockID]*block.Meta // that were read
}

// meta returns the meta.json of a block. Errors: errRaced if the block is gone.
func (s *state) meta(ctx context.Context, b catalog.Block) (*block.Meta, error) {
	if m, ok := s.metas[b.BlockID()]; ok {
		return m, nil
	}
	body, _, err := objstore.ReadAll(ctx, s.store, b.Key(s.tenant).File(block.MetaFile))
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, fmt.Errorf("block %s: %w: %w", b.BlockID(), errRaced, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read block %s: %w", b.BlockID(), err)
	}
	m, err := block.ReadMeta(body)
	if err != nil {
		return nil, fmt.Errorf("read block %s: %w", b.BlockID(), err)
	}
	s.metas[b.BlockID()] = &m
	return &m, nil
}

// Keep is how long metadata is kept at least after it was replaced, for readers that opened it
// before. The files of blocks that it names may be deleted earlier, after
// --compactor.deletion-delay.
const Keep = time.Hour

// clean deletes the metadata that no version needs which was the newest within Settings.Keep.
// Younger objects stay in any case: they may belong to a publication under way. current are the
// manifests of the newest version.
func (v *version) clean(ctx context.Context, current []iceberg.ManifestFile) error {
	needed := map[string]bool{hintFile: true}
	for i := range v.data.Snapshots {
		s := &v.data.Snapshots[i]
		needed[base(s.ManifestList)] = true
		list := current
		if s.ID != v.data.CurrentSnapshotID {
			var err error
			if list, err = v.readList(ctx, s); errors.Is(err, objstore.ErrNotFound) {
				return nil // a later publication cleans
			} else if err != nil {
				return fmt.Errorf("clean: %w", err)
			}
		}
		for _, m := range list {
			needed[base(m.Path)] = true
		}
	}
	written := map[int64]time.Time{} // versions
	var old []string
	until := time.UnixMilli(v.now).Add(-v.set.Keep)
	for o, err := range v.store.List(ctx, v.prefix(), "") {
		if err != nil {
			return fmt.Errorf("clean: list metadata: %w", err)
		}
		name := strings.TrimPrefix(o.Key, v.prefix())
		if n, ok := parseVersion(name); ok {
			written[n] = o.Modified
		} else if !needed[name] && o.Modified.Before(until) {
			old = append(old, o.Key)
		}
	}
	for n := range written {
		if next, ok := written[n+1]; ok && next.Before(until) {
			old = append(old, v.versionKey(n))
		}
	}
	for _, k := range old {
		if err := v.store.Delete(ctx, k); err != nil {
			return fmt.Errorf("clean: %w", err)
		}
	}
	return nil
}
