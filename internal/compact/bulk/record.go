package bulk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

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
