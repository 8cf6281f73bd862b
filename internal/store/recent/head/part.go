package head

import (
	"errors"

	"github.com/promlake/promlake/internal/format/series"
)

// ErrGone reports that a head has dropped the samples of a Part before they were read.
var ErrGone = errors.New("the samples are not in memory any more")

// Part has the samples of some segments, series by series. It can be read while others are stored.
type Part struct {
	Refs []series.Ref // those that have samples, ascending
	N    []uint32     // by series: its samples

	head  *Head
	epoch uint64
	minT  int64    // ms, of the first sample
	ends  []uint32 // by series: the number of the sample after its last one
}

// Part returns the samples of segments by their names, which are in the order of their ranks. It
// reports false if the head does not have exactly these: somebody else keeps the content of one, or
// the head has restarted.
func (h *Head) Part(names []string) (p *Part, ok bool) {
	if h == nil {
		return nil, false
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.last == nil {
		return nil, false
	}
	in, after, minT, ok := h.log.find(names, h.last.chains.len())
	if !ok || minT <= h.floor {
		return nil, false
	}
	n := 0
	for _, k := range in {
		if k > 0 {
			n++
		}
	}
	p = &Part{head: h, epoch: h.epoch, minT: minT, Refs: make([]series.Ref, 0, n), N: make([]uint32, 0, n), ends: make([]uint32, 0, n)}
	for ref, k := range in {
		if k > 0 {
			p.Refs, p.N = append(p.Refs, series.Ref(ref)), append(p.N, k)
			p.ends = append(p.ends, h.last.chains.at(series.Ref(ref)).had-after[ref])
		}
	}
	return p, true
}

// Append appends the samples of the i-th series: their times (ms) and values. Error: ErrGone.
func (p *Part) Append(i int, t []int64, v []float64) ([]int64, []float64, error) {
	h := p.head
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.epoch != p.epoch || h.floor >= p.minT {
		return t, v, ErrGone
	}
	t, v = h.nodes.slice(h.last.chains.at(p.Refs[i]), p.ends[i], p.N[i], t, v)
	return t, v, nil
}

// warmSteps is how many nodes of a series Warm reads: most have no more.
const warmSteps = 4

// Warm loads the memory of at most 64 series into the processor's cache, all at once, for a caller
// that then calls Append for each of them. The result has no meaning.
func (p *Part) Warm(series []uint32) (sum uint32) {
	h := p.head
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.epoch != p.epoch {
		return 0
	}
	var next [64]uint32
	for i, k := range series {
		next[i] = h.last.chains.at(p.Refs[k]).tail
	}
	for range warmSteps {
		for i := range series {
			if next[i] != 0 {
				next[i] = h.nodes.node(next[i]).prev
			}
		}
	}
	for i := range series {
		sum += next[i]
	}
	return sum
}
