package parquetfile

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// Run is N times the dictionary index or level Index.
type Run struct{ Index, N int }

// Runs calls visit for the dictionary indexes of a page of n values, run by run. Every index must
// be less than entries.
func (p *DataPage) Runs(n, entries int, visit func(Run)) error {
	c, err := p.Indexes(n, entries)
	if err != nil {
		return err
	}
	return c.h.runs(n, entries, visit)
}

// IndexCursor reads dictionary indexes of a page at ascending positions. A copy of a cursor starts
// where that cursor stands.
type IndexCursor struct {
	h       hybridReader
	at, n   int // position, and number of values
	entries int
}

// Indexes returns a cursor at the first of the n dictionary indexes of a page, which must stay in
// memory. Every index that is read must be less than entries.
func (p *DataPage) Indexes(n, entries int) (c IndexCursor, err error) {
	if p.Encoding != format.RLEDictionary {
		return c, p.unsupported("dictionary indexes")
	}
	c = IndexCursor{n: n, entries: entries}
	if n > 0 {
		err = c.h.reset(p.Values)
	}
	return c, err
}

// Runs calls visit for the indexes at positions [from, to), run by run. from is not before the end
// of the last call. Adjacent runs may have the same index.
func (c *IndexCursor) Runs(from, to int, visit func(Run)) error {
	if from < c.at || to > c.n {
		return fmt.Errorf("%w: dictionary indexes %d to %d of %d", ErrFormat, from, to, c.n)
	}
	if err := c.h.skip(from - c.at); err != nil {
		return err
	}
	c.at = to
	return c.h.runs(to-from, c.entries, visit)
}

// Lists appends the number of elements of each list in a page to counts, and returns the total of
// the page. A list that began in the page before, whose count is the last one, is counted there.
func (p *DataPage) Lists(counts []int) (_ []int, elements int, err error) {
	l := listLevels{counts: counts}
	if err := levelRuns(p.Definition, p.Entries, l.define); err != nil {
		return nil, 0, err
	}
	if err := levelRuns(p.Repetition, p.Entries, l.repeat); err != nil {
		return nil, 0, err
	}
	l.close()
	if l.failed != nil {
		return nil, 0, fmt.Errorf("%w: levels: %w", ErrFormat, l.failed)
	}
	return l.counts, l.elements, nil
}

// listLevels joins the repetition and definition levels of a page of lists. It works on runs of
// both, so that a page of empty lists costs little.
type listLevels struct {
	counts   []int
	def      []Run
	at       int // index in def
	used     int // consumed part of def[at]
	elements int

	open   bool // a list is being counted
	count  int  // its elements
	begun  bool // it started in this page
	failed error
}

func (l *listLevels) define(r Run) {
	if r.Index == 1 {
		l.elements += r.N
	}
	if n := len(l.def); n > 0 && l.def[n-1].Index == r.Index {
		l.def[n-1].N += r.N
		return
	}
	l.def = append(l.def, r)
}

func (l *listLevels) repeat(r Run) {
	for r.N > 0 {
		d := l.def[l.at]
		n := min(r.N, d.N-l.used)
		if l.used += n; l.used == d.N {
			l.at, l.used = l.at+1, 0
		}
		r.N -= n
		if r.Index == 1 {
			l.extend(n, d.Index == 1)
			continue
		}
		l.close()
		l.counts = slices.Grow(l.counts, n)
		for range n - 1 { // lists of one element, or of none, that end at once
			l.counts = append(l.counts, d.Index)
		}
		l.open, l.begun, l.count = true, true, d.Index
	}
}

// extend adds n elements to the current list.
func (l *listLevels) extend(n int, elements bool) {
	if !elements || l.open && l.begun && l.count == 0 {
		l.failed = fmt.Errorf("an empty list has further elements")
	}
	l.open = true
	l.count += n
}

func (l *listLevels) close() {
	switch n := len(l.counts); {
	case !l.open:
	case !l.begun && n > 0:
		l.counts[n-1] += l.count
	default:
		l.counts = append(l.counts, l.count)
	}
}

// levelRuns calls visit for n levels of one bit, run by run.
func levelRuns(b []byte, n int, visit func(Run)) error {
	h := hybridReader{b: b, width: 1}
	return h.runs(n, 2, visit)
}

func errIndex(v, limit int) error {
	return fmt.Errorf("%w: value %d is out of range, must be less than %d", ErrFormat, v, limit)
}
