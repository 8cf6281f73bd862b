package recent

import (
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/series"
)

// selectionShare is the inverse of the share of the limit that selections of a head may take beyond
// it.
const selectionShare = 4

// selections remember the series of the matchers that were read last, since rules and panels repeat
// them. They are safe for concurrent use.
type selections struct {
	mu  sync.Mutex
	all *memory.LRU[string, *selection] // by key
}

// selection is the series of some matchers.
type selection struct {
	n      series.Ref // refs from here on are not yet matched
	series []selected // by labels; nobody changes it
	bytes  int64
}

// selected is a series of a selection.
type selected struct {
	ref    series.Ref
	labels labels.Labels
}

// The memory of a selection and of a series, about.
const (
	selectionBytes = 256
	selectedBytes  = 40
)

// find returns the series that match, by labels. It reports false if that would take too long.
// Callers must not change them.
func (x *selections) find(p *postings, ms []*labels.Matcher) ([]selected, bool) {
	var room [256]byte
	key := string(appendKey(room[:0], ms))
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.all.Get(key)
	if e == nil {
		bytes := selectionBytes + int64(len(key))
		e = x.all.Add(key, &selection{bytes: bytes}, bytes)
	}
	s := e.Value
	if s.n == p.n {
		return s.series, true
	}
	refs, ok := p.matching(ms, s.n)
	if !ok {
		return nil, false
	}
	s.n = p.n
	if len(refs) == 0 {
		return s.series, true
	}
	b := labels.NewScratchBuilder(16)
	all := slices.Grow(slices.Clone(s.series), len(refs))
	for _, ref := range refs {
		ls := p.view.Labels(&b, ref)
		all = append(all, selected{ref, ls})
		s.bytes += selectedBytes + int64(ls.ByteSize())
	}
	slices.SortFunc(all, func(a, b selected) int { return labels.Compare(a.labels, b.labels) })
	s.series = all
	x.all.Remove(e)
	x.all.Add(key, s, s.bytes)
	x.all.Evict(0)
	return all, true
}

// appendKey appends a key of matchers: equal for equal ones only.
func appendKey(b []byte, ms []*labels.Matcher) []byte {
	for _, m := range ms {
		b = append(strconv.AppendInt(b, int64(len(m.Name)), 10), ' ')
		b = append(append(b, m.Name...), m.Type.String()...)
		b = append(strconv.AppendInt(b, int64(len(m.Value)), 10), ' ')
		b = append(b, m.Value...)
	}
	return b
}
