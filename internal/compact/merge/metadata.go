package merge

import (
	"maps"
	"slices"

	"github.com/promlake/promlake/internal/format/segment"
)

// Descriptions are the descriptions of metric families, by metric.
type Descriptions map[string]segment.Metadata

// Add adds the descriptions of the next source, whose rank is higher than those of the sources
// before it: of each family, the last description counts.
func (d Descriptions) Add(ms []segment.Metadata) {
	for _, m := range ms {
		d[m.Metric] = m
	}
}

// Sorted returns the descriptions by metric.
func (d Descriptions) Sorted() []segment.Metadata {
	out := make([]segment.Metadata, 0, len(d))
	for _, name := range slices.Sorted(maps.Keys(d)) {
		out = append(out, d[name])
	}
	return out
}
