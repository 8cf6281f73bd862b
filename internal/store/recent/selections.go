package recent

import (
	"container/list"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/series"
)

// selectionShare is the inverse of the share of the limit that selections of a head may take beyond
// it.
const selectionShare = 4

// selections remember the series of the matchers that were read last, since rules and panels repeat
// them. They are safe for concurrent use.
type selections struct {
	limit int64

	mu    sync.Mutex
	all   map[string]*list.Element // of *selection, by key
	order *list.List               // the one that was used last comes first
	bytes int64
}

// selection is the series of some matchers.
type selection struct {
	key    string
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

// find returns the series that match, by labels. It reports false if that would take too long. Callers
// must not change them.
func (x *selections) find(p *postings, ms []*labels.Matcher) ([]selected, bool) {
	var room [256]byte
	named := appendKey(room[:0], ms)
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.all[string(named)]
	if e == nil {
		key := string(named)
		e = x.order.PushFront(&selection{key: key, bytes: selectionBytes + int64(len(key))})
		x.all[key] = e
		x.bytes += e.Value.(*selection).bytes
	}
	x.order.MoveToFront(e)
	s := e.Value.(*selection)
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
		x.bytes += selectedBytes + int64(ls.ByteSize())
	}
	slices.SortFunc(all, func(a, b selected) int { return labels.Compare(a.labels, b.labels) })
	s.series = all
	for x.bytes > x.limit && x.order.Len() > 0 {
		x.forget(x.order.Back())
	}
	return all, true
}

// forget forgets a selection. The caller holds x.mu.
func (x *selections) forget(e *list.Element) {
	s := x.order.Remove(e).(*selection)
	delete(x.all, s.key)
	x.bytes -= s.bytes
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
