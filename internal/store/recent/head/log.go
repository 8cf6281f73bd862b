package head

import (
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
func (l *log) add(name string, stored time.Time, s Segment, rows *rows, from int64) (kept bool) {
	r := record{name: name, stored: stored, minT: math.MaxInt64, maxT: math.MinInt64}
	l.runs = l.runs[:0]
	refs, samples := s.Refs(), 0
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
		ref, each := refs[row], uint32(end-begin)
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
