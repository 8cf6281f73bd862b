package query

import (
	"slices"

	"github.com/promlake/promlake/internal/query/duck"
)

// run is a series' rows [start, start+n) of a block's files of one kind, counted over all of them.
type run struct {
	start, n int64
	series   *memSeries
}

// end is the first row after the run.
func (r run) end() int64 { return r.start + r.n }

// places are what a read takes from one block.
type places struct {
	floats, hists []run
	exemplars     map[uint64]*memSeries // by the id that the series has in the block
}

// inBlock returns which rows of a chunk are of series that have something of the scan's payload in a block; nil is none.
func (c *collector) inBlock(cols []duck.Vector) func(row int) bool {
	s := c.scan
	switch {
	case s.rowCount >= 0:
		floats, hists := cols[s.rowCount], cols[s.histCount]
		return func(i int) bool { return floats.Valid(i) && floats.Int64s()[i]+hists.Int64s()[i] > 0 }
	case s.exCount >= 0:
		return func(i int) bool { return cols[s.exCount].Valid(i) && cols[s.exCount].Int64s()[i] > 0 }
	default:
		return nil
	}
}

// place notes where blocks have the samples of a chunk's series.
func (c *collector) place(rows []*memSeries, cols []duck.Vector) {
	if c.scan.rowCount < 0 {
		return
	}
	object := cols[colFileIndex].Uint64s()
	valid := cols[c.scan.rowCount]
	starts, counts := cols[c.scan.rowStart].Int64s(), cols[c.scan.rowCount].Int64s()
	histStarts, histCounts := cols[c.scan.histStart].Int64s(), cols[c.scan.histCount].Int64s()
	for i, s := range rows {
		if s == nil || !valid.Valid(i) {
			continue
		}
		p := &c.places[object[i]]
		if counts[i] > 0 {
			p.floats = append(p.floats, run{starts[i], counts[i], s})
		}
		if histCounts[i] > 0 {
			p.hists = append(p.hists, run{histStarts[i], histCounts[i], s})
		}
	}
}

// sorted orders runs by their place. They do not overlap.
func sorted(runs []run) []run {
	slices.SortFunc(runs, func(a, b run) int { return int(a.start - b.start) })
	return runs
}
