package index

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/parquet-go/parquet-go/format"
	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// labelLeaves are the columns of labels in the files of a schema. They are immutable.
type labelLeaves struct {
	of      []parquetfile.Leaf
	byName  map[string]int // leaves
	sorted  []labelLeaf    // by name
	columns int            // label columns, without that of the metric
}

// labelLeaf is the column of a label: its leaf, and its position among the label columns, -1 for
// that of the metric.
type labelLeaf struct {
	name         string
	leaf, column int
}

// lastLabels are the label columns of schemas that were read last, each at its number of leaves
// modulo their size: nearly all segments of a tenant have one schema.
var lastLabels [8]atomic.Pointer[labelLeaves]

// labelsOf returns the label columns of a file.
func labelsOf(layout *parquetfile.Layout) (*labelLeaves, error) {
	if len(layout.Leaves) == 0 {
		return &labelLeaves{}, nil
	}
	last := &lastLabels[len(layout.Leaves)%len(lastLabels)]
	if l := last.Load(); l != nil && len(l.of) == len(layout.Leaves) && &l.of[0] == &layout.Leaves[0] {
		return l, nil
	}
	l := &labelLeaves{of: layout.Leaves, byName: map[string]int{}}
	for leaf := range layout.Leaves {
		e, column := &layout.Leaves[leaf], l.columns
		name, ok := strings.CutPrefix(e.Path[0], segment.LabelPrefix)
		if ok {
			l.columns++
		}
		if e.Path[0] == segment.ColMetric {
			name, ok, column = model.MetricNameLabel, true, -1
		}
		if !ok {
			continue
		}
		if e.Type != format.ByteArray || len(e.Path) != 1 || e.Nested {
			return nil, fmt.Errorf("%w: column %v is not a label column", parquetfile.ErrFormat, e.Path)
		}
		l.byName[name], l.sorted = leaf, append(l.sorted, labelLeaf{name, leaf, column})
	}
	slices.SortFunc(l.sorted, func(a, b labelLeaf) int { return strings.Compare(a.name, b.name) })
	last.Store(l)
	return l, nil
}
