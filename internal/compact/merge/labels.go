package merge

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/series"
)

// appendLabels appends the labels of a label set in the order of names, as Table.Intern takes them.
func appendLabels(dst []series.Label, v *series.View, r series.Ref) []series.Label {
	named := false
	name := func() {
		if m := v.Metrics[v.Metric(r)]; m != "" {
			dst = append(dst, series.Label{Name: model.MetricNameLabel, Value: m})
		}
		named = true
	}
	for _, p := range v.Pairs(r) {
		if !named && v.Names[p.Name] > model.MetricNameLabel {
			name()
		}
		dst = append(dst, series.Label{Name: v.Names[p.Name], Value: v.Values[p.Name][p.Value]})
	}
	if !named {
		name()
	}
	return dst
}

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
