package merge

import (
	"maps"
	"slices"

	"github.com/promlake/promlake/internal/segment"
)

// Descriptions collects the descriptions of metric families, from sources ascending by rank. Of
// each family, the last one counts.
type Descriptions struct{ byMetric map[string]segment.Metadata }

// Add adds the descriptions of the next source.
func (d *Descriptions) Add(ms []segment.Metadata) {
	if d.byMetric == nil && len(ms) > 0 {
		d.byMetric = make(map[string]segment.Metadata, len(ms))
	}
	for _, m := range ms {
		d.byMetric[m.Metric] = m
	}
}

// Sorted returns the descriptions by metric.
func (d *Descriptions) Sorted() []segment.Metadata {
	out := make([]segment.Metadata, 0, len(d.byMetric))
	for _, name := range slices.Sorted(maps.Keys(d.byMetric)) {
		out = append(out, d.byMetric[name])
	}
	return out
}
