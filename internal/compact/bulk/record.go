package bulk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
)

// recordVersion is the version of records that this package writes and reads.
const recordVersion = 1

// Record says which inputs are imported, for a part of the series in one window. Its object is
// written after the commit of the block (schemas/keys.md).
type Record struct {
	Version int           `json:"version"`
	Inputs  []string      `json:"inputs"` // IDs, sorted
	Level   key.Level     `json:"level"`
	Window  key.Window    `json:"window"`
	Slice   catalog.Slice `json:"slice,omitzero"`
	Block   ulid.ULID     `json:"block"` // zero: there was nothing to write
	Series  int64         `json:"series"`
	Samples int64         `json:"samples"`
	Bytes   int64         `json:"bytes"`
}

// has reports whether the samples of an input in a unit are imported.
func (r *Record) has(input string, u *Unit) bool {
	if int64(r.Window) > u.from() || r.Level.End(r.Window) < u.to() || !u.Slice.Within(r.Slice) {
		return false
	}
	_, ok := slices.BinarySearch(r.Inputs, input)
	return ok
}

// readers is the number of records that are read at once.
const readers = 16

// Records returns the records of a tenant's imports.
func Records(ctx context.Context, store objstore.Store, tenant string) ([]Record, error) {
	var keys []string
	for obj, err := range store.List(ctx, key.ImportsPrefix(tenant), "") {
		if err != nil {
			return nil, fmt.Errorf("list imports of tenant %s: %w", tenant, err)
		}
		if _, _, err := key.ParseImport(obj.Key); err == nil {
			keys = append(keys, obj.Key)
		}
	}
	out := make([]Record, len(keys))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, k := range keys {
		g.Go(func() error {
			b, _, err := objstore.ReadAll(ctx, store, k)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(b, &out[i]); err != nil {
				return fmt.Errorf("decode %s: %w", k, err)
			}
			if out[i].Version != recordVersion {
				return fmt.Errorf("decode %s: version %d, this program reads %d", k, out[i].Version, recordVersion)
			}
			return nil
		})
	}
	return out, g.Wait()
}

// keep writes the record of a unit. That another process was first does not matter.
func (r Record) keep(ctx context.Context, store objstore.Store, tenant string, id ulid.ULID) error {
	r.Version = recordVersion
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	_, err = store.Put(ctx, key.Import(tenant, id), bytes.NewReader(append(b, '\n')), objstore.Condition{IfAbsent: true})
	if err != nil && !errors.Is(err, objstore.ErrPrecondition) {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}
