package source

import (
	"context"

	"github.com/promlake/promlake/internal/store/catalog"
)

// warmSeries is the number of series up to which a block's series table, some megabytes, is fetched
// before it is known to be needed.
const warmSeries = 100_000

// maxWarm is the number of objects that are fetched before they are known to be needed. More of
// them might not stay in the caches until then.
const maxWarm = 256

// Warm fetches what a read of a snapshot asks for first: the footers of segments, small segments
// with them, and meta.json and small series tables of blocks that were not read before. It reports
// no errors: the read that needs an object meets them again.
func (f *Files) Warm(ctx context.Context, snap catalog.Snapshot) {
	small := map[string]bool{}
	for _, b := range snap.Blocks {
		small[b.Key(snap.Tenant).String()] = b.Series <= warmSeries
	}
	var tasks []func(context.Context)
	objs := Refs(snap)
	for i := range objs {
		o := &objs[i]
		if len(tasks) >= maxWarm {
			break
		}
		if f.inPlace(o.Series) || f.footers.Has(o.Series) {
			continue
		}
		tasks = append(tasks, func(ctx context.Context) { _, _ = f.footer(ctx, o) })
		if o.IsBlock() && small[o.Block.String()] {
			tasks = append(tasks, func(ctx context.Context) {
				if _, release, err := f.whole(ctx, o.Series, -1); err == nil {
					release()
				}
			})
		}
	}
	_ = f.Each(ctx, len(tasks), func(ctx context.Context, i int) error {
		tasks[i](ctx)
		return nil
	})
}
