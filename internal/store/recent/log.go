package recent

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/format/series"
)

// log records, for each of the last segments in order of arrival, which series have samples in it.
// Part uses it to extract exactly one set of segments. It is empty after the head restarts or moves
// to another table.
type log struct {
	records []record
	dropped int64 // ms: the latest first sample of a record that was dropped
	bytes   int64
	runs    []run // of add
}

// record is the entry of a segment.
type record struct {
	name       string
	stored     time.Time
	minT, maxT int64 // ms, of its samples
	kept       bool  // only the head has its content
	scattered  bool  // its runs were too many to be kept
	runs       []run
}

// run is a range of series of a table that have equally many samples in a segment. The series of a
// target mostly are one run, because they came together.
type run struct {
	from    series.Ref
	n, each uint32
}

const (
	runBytes = 12 // of memory
	// minRun is how many samples the runs of a segment have on average, at least, unless they are few:
	// results of rules that others wait for are stored alone.
	minRun  = 8
	fewRuns = 16
)

func (l *log) reset() { *l = log{dropped: math.MinInt64, runs: l.runs} }

// add adds a segment. It is kept if its samples are later than from (ms) and its series form few
// runs.
func (l *log) add(name string, stored time.Time, s *Segment, rows *rows, from int64) (kept bool) {
	r := record{name: name, stored: stored, minT: math.MaxInt64, maxT: math.MinInt64}
	l.runs = l.runs[:0]
	samples := 0
	for _, row := range rows.sorted {
		begin, end := rows.samples(s, row)
		if begin == end {
			continue
		}
		first := s.Time(begin)
		last := first
		if end-begin > 1 {
			last = s.Time(end - 1)
		}
		r.minT, r.maxT = min(r.minT, first), max(r.maxT, last)
		samples += end - begin
		ref, each := s.Rows[row], uint32(end-begin)
		if n := len(l.runs); n > 0 && l.runs[n-1].each == each && l.runs[n-1].from+series.Ref(l.runs[n-1].n) == ref {
			l.runs[n-1].n++
		} else {
			l.runs = append(l.runs, run{ref, 1, each})
		}
	}
	if r.scattered = len(l.runs) > fewRuns && minRun*len(l.runs) > samples; !r.scattered {
		r.runs = slices.Clone(l.runs)
	}
	r.kept = r.minT > from && !r.scattered
	l.records = append(l.records, r)
	l.bytes += r.bytes()
	return r.kept
}

func (r *record) bytes() int64 {
	const own = 112
	return own + int64(len(r.name)) + runBytes*int64(len(r.runs))
}

// count adds the samples of a record to counts by ref.
func (r *record) count(counts []uint32) {
	for _, x := range r.runs {
		for i := range x.n {
			counts[x.from+series.Ref(i)] += x.each
		}
	}
}

// drop removes the segments that were stored at or before a time.
func (l *log) drop(until time.Time) {
	n := 0
	for n < len(l.records) && !l.records[n].stored.After(until) {
		l.dropped = max(l.dropped, l.records[n].minT)
		l.bytes -= l.records[n].bytes()
		n++
	}
	if n > 0 {
		l.records = append(l.records[:0], l.records[n:]...)
	}
}

// find returns, by ref, how many samples the segments with these names have, and how many the
// segments after them; the samples of a series lie in the order of time. names are in the order of
// the log. It reports false if a segment is not kept, or if samples of others may lie in between.
func (l *log) find(names []string, refs int) (in, after []uint32, minT int64, ok bool) {
	minT, maxT, found, last := int64(math.MaxInt64), int64(math.MinInt64), 0, 0
	first := len(l.records)
	for i := range l.records {
		r := &l.records[i]
		if found == len(names) || r.name != names[found] {
			continue
		}
		if !r.kept {
			return nil, nil, 0, false
		}
		first, last = min(first, i), i
		minT, maxT = min(minT, r.minT), max(maxT, r.maxT)
		found++
	}
	if found == 0 || found < len(names) || l.dropped > maxT {
		return nil, nil, 0, false
	}
	in, after = make([]uint32, refs), make([]uint32, refs)
	found = 0
	for i := range l.records {
		r := &l.records[i]
		switch {
		case found < len(names) && r.name == names[found]:
			found++
			r.count(in)
		case i > first && r.scattered && r.maxT >= minT:
			return nil, nil, 0, false
		case i > last || r.minT > maxT:
			r.count(after)
		case i > first && r.maxT >= minT:
			return nil, nil, 0, false
		}
	}
	return in, after, minT, true
}

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
