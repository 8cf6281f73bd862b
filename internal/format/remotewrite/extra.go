package remotewrite

import (
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/series"
)

// seedOf returns the seed of the keys of a message. The keys that senders' texts have without the
// labels of the rules name other series, so each set of these labels has a seed of its own.
func seedOf(table *series.Table, labels []series.Label) uint64 {
	seed := table.Seed()
	if len(labels) == 0 {
		return seed
	}
	var text []byte
	for _, l := range labels {
		text = AppendKey(AppendKey(text, l.Name), l.Value)
	}
	return seed ^ xxh3.HashSeed(text, seed)
}

// Extend adds labels to a label set, instead of those of the same name. It uses lset's memory.
func Extend(lset, labels []series.Label) []series.Label {
	return append(slices.DeleteFunc(lset, func(x series.Label) bool {
		return slices.ContainsFunc(labels, func(l series.Label) bool { return l.Name == x.Name })
	}), labels...)
}

// CheckExtra checks labels that a request adds to all of its series. It returns them as Rules has
// them.
func (l *Limits) CheckExtra(labels []series.Label) ([]series.Label, error) {
	labels = series.LastOfEach(labels)
	if err := l.checkNumber(labels); err != nil {
		return nil, err
	}
	for _, x := range labels {
		if err := l.checkLabel(x); err != nil {
			return nil, err
		}
	}
	return labels, nil
}
