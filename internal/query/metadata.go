package query

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/metadata"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/tenant"
)

// Metadata returns the distinct metadata of metric families, as senders described them in the segments of Settings.RecentWindow.
// metric "" means all families. At most limit families (the first by name) with limitPerMetric entries each are returned; a
// negative limit, or a limitPerMetric below 1, is none.
func (s *Stage) Metadata(ctx context.Context, metric string, limit, limitPerMetric int) (map[string][]metadata.Metadata, error) {
	snap, err := s.recent(ctx)
	if err != nil {
		return nil, err
	}
	segs, err := s.files.locate(ctx, snap.Segments)
	if err != nil {
		return nil, err
	}
	seen := map[string]map[metadata.Metadata]struct{}{}
	for _, seg := range segs {
		for _, h := range seg.footer.metadata {
			m := h.Value()
			if metric != "" && m.Metric != metric {
				continue
			}
			if seen[m.Metric] == nil {
				seen[m.Metric] = map[metadata.Metadata]struct{}{}
			}
			seen[m.Metric][metadata.Metadata{Type: model.MetricType(m.Type), Help: m.Help, Unit: m.Unit}] = struct{}{}
		}
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

// recent is the snapshot of the windows that overlap Settings.RecentWindow.
func (s *Stage) recent(ctx context.Context) (catalog.Snapshot, error) {
	now := s.now()
	return s.snapshot(ctx, tenant.From(ctx), now.Add(-s.settings.RecentWindow).UnixMilli(), now.UnixMilli())
}
