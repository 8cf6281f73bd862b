package merge

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/series"
)

// lset fills b with the labels of a label set.
func lset(b *labels.ScratchBuilder, v *series.View, r series.Ref) labels.Labels {
	b.Reset()
	if m := v.Metrics[v.Metric(r)]; m != "" {
		b.Add(model.MetricNameLabel, m)
	}
	for _, p := range v.Pairs(r) {
		b.Add(v.Names[p.Name], v.Values[p.Name][p.Value])
	}
	b.Sort()
	return b.Labels()
}
