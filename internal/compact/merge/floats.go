package merge

import "slices"

// Run is a run of float samples of one series. TS and V are aligned; ST is aligned with them, or nil if no sample has a start timestamp.
type Run struct {
	TS []int64 // ms
	V  []float64
	ST []int64 // ms, 0 = unknown
}

func (r *Run) reset() { r.TS, r.V, r.ST = r.TS[:0], r.V[:0], r.ST[:0] }

// floats reads the floats of all rows into run, one after the other; mark k is where those of row k begin.
func (m *merger) floats() error {
	m.run.reset()
	m.marks = m.marks[:0]
	for _, a := range m.rows {
		s, from := m.sources[a.source], len(m.run.TS)
		m.marks = append(m.marks, from)
		n := int64(s.rows[a.row].floats)
		if n == 0 {
			continue
		}
		if err := s.content.floats(&s.rows[a.row], &m.run); err != nil {
			return s.fail(err)
		}
		m.stats.Read += n
		m.alignST()
		if ivs := m.deletes.of(a.source); len(ivs) > 0 {
			m.stats.Deleted += int64(m.run.cut(from, ivs))
		}
	}
	return nil
}

// alignST fills up the start timestamps that the last source did not know.
func (m *merger) alignST() {
	if !m.hasST {
		m.run.ST = nil
		return
	}
	from := len(m.run.ST)
	m.run.ST = slices.Grow(m.run.ST, len(m.run.TS)-from)[:len(m.run.TS)]
	clear(m.run.ST[from:])
}

// cut removes the samples from index from on that are within the intervals, and returns their number.
func (r *Run) cut(from int, ivs []interval) int {
	w := from
	for i := from; i < len(r.TS); i++ {
		if covered(ivs, r.TS[i]) {
			continue
		}
		r.TS[w], r.V[w] = r.TS[i], r.V[i]
		if r.ST != nil {
			r.ST[w] = r.ST[i]
		}
		w++
	}
	n := len(r.TS) - w
	r.TS, r.V = r.TS[:w], r.V[:w]
	if r.ST != nil {
		r.ST = r.ST[:w]
	}
	return n
}

// mergeRuns brings run into the order of time, each timestamp once. Mostly the runs follow one another and nothing is to be done. Otherwise
// neighbours in rank are merged in pairs until one run is left, the right one of a pair winning.
func (m *merger) mergeRuns() {
	marks := m.occupied()
	for len(marks) > 1 && !m.ascending(marks) {
		m.spare.reset()
		half := marks[:0]
		for i := 0; i < len(marks); i += 2 {
			from, mid, to := marks[i], len(m.run.TS), len(m.run.TS)
			if i+1 < len(marks) {
				mid = marks[i+1]
			}
			if i+2 < len(marks) {
				to = marks[i+2]
			}
			half = append(half, len(m.spare.TS)) // never overtakes i
			m.spare.mergePair(m.run.slice(from, mid), m.run.slice(mid, to))
		}
		m.run, m.spare = m.spare, m.run
		marks = half
	}
}

// occupied returns the marks of the runs that are not empty, in the memory of marks.
func (m *merger) occupied() []int {
	out := m.marks[:0]
	for i, from := range m.marks {
		to := len(m.run.TS)
		if i+1 < len(m.marks) {
			to = m.marks[i+1]
		}
		if from < to {
			out = append(out, from)
		}
	}
	return out
}

// ascending says that every run ends before the next one begins.
func (m *merger) ascending(marks []int) bool {
	for _, at := range marks[1:] {
		if m.run.TS[at-1] >= m.run.TS[at] {
			return false
		}
	}
	return true
}

func (r *Run) slice(from, to int) Run {
	s := Run{TS: r.TS[from:to], V: r.V[from:to]}
	if len(r.ST) > 0 {
		s.ST = r.ST[from:to]
	}
	return s
}

// push appends samples.
func (r *Run) push(s Run) {
	r.TS, r.V, r.ST = append(r.TS, s.TS...), append(r.V, s.V...), append(r.ST, s.ST...)
}

// mergePair appends the samples of a and b in the order of time; of equal timestamps that of b.
func (r *Run) mergePair(a, b Run) {
	for len(a.TS) > 0 && len(b.TS) > 0 {
		n := before(a.TS, b.TS[0])
		r.push(a.slice(0, n))
		if a = a.slice(n, len(a.TS)); len(a.TS) == 0 {
			break
		}
		if a.TS[0] == b.TS[0] {
			a = a.slice(1, len(a.TS))
			if len(a.TS) == 0 {
				break
			}
		}
		n = before(b.TS, a.TS[0])
		r.push(b.slice(0, n))
		b = b.slice(n, len(b.TS))
	}
	r.push(a)
	r.push(b)
}

// before returns how many of the ascending timestamps are below t: it gallops, for they are mostly few or all.
func before(ts []int64, t int64) int {
	if n := len(ts); n == 0 || ts[n-1] < t {
		return n
	}
	hi := 1
	for hi <= len(ts) && ts[hi-1] < t {
		hi *= 2
	}
	lo := hi / 2
	n, _ := slices.BinarySearch(ts[lo:min(hi, len(ts))], t)
	return lo + n
}
