package doctorapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// live reports whether a source is live at present.
func (d *doctor) live(ctx context.Context, src source) (bool, error) {
	m, _, err := catalog.ReadManifest(ctx, d.store, d.tenant)
	if err != nil {
		return false, fmt.Errorf("read manifest again: %w", err)
	}
	if src.segment != nil {
		for _, c := range m.Consumed {
			if c.SegmentID == src.segment.SegmentID() {
				return false, nil
			}
		}
		return true, nil
	}
	for i := range m.Blocks {
		if m.Blocks[i].BlockID() == src.block.BlockID() {
			return true, nil
		}
	}
	return false, nil
}

// quarantine copies the object's bytes, and then ends its life in the manifest. The originals
// become garbage, which the compactor deletes after its deletion delay. Stopped in between, the
// object still counts, and running again is safe.
func (d *doctor) quarantine(ctx context.Context, f *Damaged) error {
	// Copy a segment, or all objects under a block's prefix.
	for obj, err := range d.store.List(ctx, f.Object, "") {
		if err != nil {
			return fmt.Errorf("list %s: %w", f.Object, err)
		}
		body, _, err := objstore.ReadAll(ctx, d.store, obj.Key)
		if err != nil {
			return err
		}
		_, err = d.store.Put(ctx, key.Quarantine+obj.Key, bytes.NewReader(body), objstore.Condition{IfAbsent: true})
		if err != nil && !errors.Is(err, objstore.ErrPrecondition) { // an earlier attempt has copied it
			return fmt.Errorf("keep %s: %w", obj.Key, err)
		}
	}
	_, err := catalog.Commit(ctx, d.store, d.tenant, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		return m.Expire(now, f.source.names())
	})
	if err != nil {
		return err
	}
	f.Quarantined = true
	return nil
}
