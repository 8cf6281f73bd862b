package remotewrite

import (
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/series"
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

// Extend adds labels to a label set that is sorted by name, instead of those of the same name. It
// uses lset's memory. The labels must be sorted by name, too.
func Extend(lset, labels []series.Label) []series.Label {
	for _, l := range labels {
		lset = slices.DeleteFunc(lset, func(x series.Label) bool { return x.Name == l.Name })
		at, _ := slices.BinarySearchFunc(lset, l, func(a, b series.Label) int { return strings.Compare(a.Name, b.Name) })
		lset = slices.Insert(lset, at, l)
	}
	return lset
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
