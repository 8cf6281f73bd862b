package exec

import (
	"sync"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
)

// scratch is memory of an attempt, which others get after Release.
type scratch struct {
	held     lookup.Room
	asked    []lookup.Selector
	selected []selected
	resolved map[*parser.VectorSelector]*plan.Resolution
	series   []plan.Series
	planned  []plan.Resolution
}

// The numbers of selectors and series up to which scratch is used again. Of scratch with room for
// more than fewSeries, little is kept, and it is used first: rules over many series come again and
// again, among many over few.
const (
	keptSelectors = 64
	fewSeries     = 1 << 10
	keptSeries    = 4 << 10
	manyScratches = 2
)

var (
	scratches = sync.Pool{New: func() any {
		return &scratch{resolved: map[*parser.VectorSelector]*plan.Resolution{}}
	}}
	largeScratches = memory.NewPool(manyScratches, func(s *scratch) int { return cap(s.series) })
)

// newScratch returns memory for an attempt.
func newScratch() *scratch {
	if s, ok := largeScratches.Get(keptSeries); ok {
		return s
	}
	return scratches.Get().(*scratch)
}

// Release lets others have the memory of the attempt. Nothing that Plan and Evaluate have used may
// be used any more, but their results may.
func (p *Attempt) Release() {
	s := p.scratch
	p.scratch = nil
	if len(s.selected) > keptSelectors || cap(s.series) > keptSeries {
		return
	}
	s.held.Reset()
	clear(s.asked)
	clear(s.selected)
	clear(s.resolved)
	clear(s.series)
	clear(s.planned)
	s.asked, s.selected, s.series, s.planned = s.asked[:0], s.selected[:0], s.series[:0], s.planned[:0]
	if cap(s.series) > fewSeries {
		largeScratches.Put(s)
	} else {
		scratches.Put(s)
	}
}
