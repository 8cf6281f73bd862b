package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/format/iceberg"
	"github.com/promlake/promlake/internal/store/objstore"
)

// clean deletes the metadata that no version needs which was the newest within Keep. Younger
// objects stay in any case: they may belong to a publication under way. current are the manifests
// of the newest version.
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
	until := time.UnixMilli(v.now).Add(-Keep)
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
