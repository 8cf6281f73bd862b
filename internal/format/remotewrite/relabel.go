package remotewrite

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/promlake/promlake/internal/format/series"
)

// relabel applies the relabeling rules to the label set at hand, and reports whether they keep it.
// The set must have the form of one, so that the rules see all of it; what its names and values
// are is checked afterwards.
func (b *Builder) relabel() (keep bool, err error) {
	if err := b.Limits.sort(b.labels); err != nil {
		return false, err
	}
	b.scratch.Reset()
	for _, l := range b.labels {
		b.scratch.Add(l.Name, l.Value)
	}
	lb := labels.NewBuilder(b.scratch.Labels())
	if !relabel.ProcessBuilder(lb, b.Relabel...) {
		return false, nil
	}
	b.ClearLabels()
	// Rules may add labels; one more than the limit is enough to refuse the set.
	lb.Labels().Range(func(l labels.Label) { b.AppendLabel(series.Label{Name: l.Name, Value: l.Value}) })
	return true, nil
}
