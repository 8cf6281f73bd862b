package query

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/metadata"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/tenant"
)

// Metadata returns the distinct metadata of metric families, as senders described them in the segments and blocks of Settings.RecentWindow.
// metric "" means all families. At most limit families (the first by name) with limitPerMetric entries each are returned; a
// negative limit, or a limitPerMetric below 1, is none.
func (s *Stage) Metadata(ctx context.Context, metric string, limit, limitPerMetric int) (map[string][]metadata.Metadata, error) {
	var seen families
	err := s.replanning(ctx, s.recent, func(snap catalog.Snapshot) error {
		objs, err := s.files.locate(ctx, objectsOf(snap))
		if err != nil {
			return err
		}
		seen = families{}
		for _, o := range objs {
			for _, h := range o.footer.metadata {
				if m := h.Value(); metric == "" || m.Metric == metric {
					seen.add(m)
				}
			}
		}
		return s.blockMetadata(ctx, objs, metric, seen)
	})
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(seen))
	if limit >= 0 && len(names) > limit {
		names = names[:limit]
	}
	out := make(map[string][]metadata.Metadata, len(names))
	for _, n := range names {
		ms := slices.SortedFunc(maps.Keys(seen[n]), compareMetadata)
		if limitPerMetric > 0 && len(ms) > limitPerMetric {
			ms = ms[:limitPerMetric]
		}
		out[n] = ms
	}
	return out, nil
}

func compareMetadata(a, b metadata.Metadata) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Help, b.Help), cmp.Compare(a.Unit, b.Unit))
}

// families are the distinct descriptions of metric families, by name.
type families map[string]map[metadata.Metadata]struct{}

func (f families) add(m segment.Metadata) {
	if f[m.Metric] == nil {
		f[m.Metric] = map[metadata.Metadata]struct{}{}
	}
	f[m.Metric][metadata.Metadata{Type: model.MetricType(m.Type), Help: m.Help, Unit: m.Unit}] = struct{}{}
}

// blockMetadata adds what the blocks among objs say of a metric family, or of all.
func (s *Stage) blockMetadata(ctx context.Context, objs []located, metric string, seen families) error {
	var keys []string
	for _, o := range objs {
		if m := o.footer.block; m != nil && fileOf(m, block.MetadataFile) != nil {
			keys = append(keys, o.object.block.File(block.MetadataFile))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return s.files.with(ctx, keys, func(paths []string) error {
		sql := "SELECT DISTINCT metric, type, help, unit FROM read_parquet([" + duck.Literals(paths) + "], hive_partitioning = false)"
		if metric != "" {
			sql += " WHERE metric = " + duck.Literal(metric)
		}
		return s.db.Each(ctx, sql, []string{duck.Varchar, duck.Varchar, duck.Varchar, duck.Varchar}, func(n int, cols []duck.Vector) error {
			for i := range n {
				text := func(c int) string { return cols[c].Strings()[i].String() }
				seen.add(segment.Metadata{Metric: text(0), Type: text(1), Help: text(2), Unit: text(3)})
			}
			return nil
		})
	})
}

// recent is the snapshot of the windows that overlap Settings.RecentWindow.
func (s *Stage) recent(ctx context.Context, _ bool) (catalog.Snapshot, error) {
	now := s.now()
	return s.snapshot(ctx, tenant.From(ctx), now.Add(-s.settings.RecentWindow).UnixMilli(), now.UnixMilli())
}
