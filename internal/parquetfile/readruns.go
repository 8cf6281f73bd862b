package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// Run is N times the dictionary index or level Index.
type Run struct{ Index, N int }

// Runs calls visit for the dictionary indexes of a page of n values, run by run. Every index must
// be less than entries.
func (p *DataPage) Runs(n, entries int, visit func(Run)) error {
	if p.Encoding != format.RLEDictionary {
		return p.unsupported("dictionary indexes")
	}
	if len(p.Values) == 0 {
		if n == 0 {
			return nil
		}
		return fmt.Errorf("%w: dictionary indexes: %w", ErrFormat, errCut)
	}
	return hybridRuns(p.Values[1:], int(p.Values[0]), n, entries, visit)
}

// Lists calls visit with the number of elements of each list in a page, and returns the total.
// continued is true for the first list if it continues the last list of the previous page.
func (p *DataPage) Lists(visit func(n int, continued bool)) (int, error) {
	l := listLevels{visit: visit}
	if err := hybridRuns(p.Definition, 1, p.Entries, 2, l.define); err != nil {
		return 0, err
	}
	if err := hybridRuns(p.Repetition, 1, p.Entries, 2, l.repeat); err != nil {
		return 0, err
	}
	if err := l.finish(); err != nil {
		return 0, fmt.Errorf("%w: levels: %w", ErrFormat, err)
	}
	return l.elements, nil
}

// listLevels joins the repetition and definition levels of a page of lists. It works on runs of
// both, so that a page of empty lists costs little.
type listLevels struct {
	visit    func(n int, continued bool)
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
		for range n {
			l.close()
			l.open, l.begun, l.count = true, true, d.Index
		}
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
	if l.open {
		l.visit(l.count, !l.begun)
	}
}

func (l *listLevels) finish() error {
	l.close()
	return l.failed
}

// hybridRuns calls visit for the first n values in the RLE / bit-packed hybrid encoding b. Values
// have width bits and must be less than limit. See hybrid for the encoding.
func hybridRuns(b []byte, width, n, limit int, visit func(Run)) error {
	if width > 32 {
		return fmt.Errorf("%w: values of %d bits", ErrFormat, width)
	}
	for n > 0 {
		head, k := binary.Uvarint(b)
		if k <= 0 {
			return fmt.Errorf("%w: runs: %w", ErrFormat, errCut)
		}
		b = b[k:]
		size := (width + 7) / 8
		if head&1 == 1 {
			size = int(min(head>>1, uint64(len(b))+1)) * width
		}
		if size > len(b) {
			return fmt.Errorf("%w: runs: %w", ErrFormat, errCut)
		}
		var err error
		if head&1 == 1 {
			n, err = packedRuns(b[:size], width, min(n, size*8/max(1, width)), n, limit, visit)
		} else {
			n, err = oneRun(b[:size], head>>1, n, limit, visit)
		}
		if err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

func errIndex(v, limit int) error {
	return fmt.Errorf("%w: value %d is out of range, must be less than %d", ErrFormat, v, limit)
}

// oneRun visits an RLE run and returns how many of n values are left.
func oneRun(b []byte, count uint64, n, limit int, visit func(Run)) (int, error) {
	v := 0
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | int(b[i])
	}
	if v >= limit {
		return 0, errIndex(v, limit)
	}
	if count == 0 {
		return 0, fmt.Errorf("%w: an empty run", ErrFormat)
	}
	count = min(count, uint64(n))
	visit(Run{v, int(count)})
	return n - int(count), nil
}

// packedRuns visits take bit-packed values and returns how many of n values are left.
func packedRuns(b []byte, width, take, n, limit int, visit func(Run)) (int, error) {
	if take == 0 {
		return 0, fmt.Errorf("%w: an empty run", ErrFormat)
	}
	var acc uint64
	have := 0
	mask := uint64(1)<<width - 1
	run := Run{}
	for range take {
		for have < width {
			acc |= uint64(b[0]) << have
			b = b[1:]
			have += 8
		}
		v := int(acc & mask)
		acc >>= width
		have -= width
		if run.N > 0 && v == run.Index {
			run.N++
			continue
		}
		if v >= limit {
			return 0, errIndex(v, limit)
		}
		if run.N > 0 {
			visit(run)
		}
		run = Run{v, 1}
	}
	visit(run)
	return n - take, nil
}
