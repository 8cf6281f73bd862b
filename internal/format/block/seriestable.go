package block

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Columns of series.parquet that segments do not have.
const (
	ColRowStart  = "row_start"
	ColRowCount  = "row_count"
	ColHistStart = "hist_start"
	ColHistCount = "hist_count"
	ColExCount   = "ex_count"
	ColMinTS     = "min_ts"
	ColMaxTS     = "max_ts"
	ColMinMillis = "min_" + ColTSMillis // alias
	ColMaxMillis = "max_" + ColTSMillis // alias
)

// seriesKeys is the number of columns of series.parquet before those of the labels.
const seriesKeys = 2

// seriesFigures are the columns of series.parquet after those of the labels.
var seriesFigures = []string{ColRowStart, ColRowCount, ColHistStart, ColHistCount, ColExCount, ColMinTS, ColMaxTS}

// seriesAliases are the columns of series.parquet that share the bytes of others.
var seriesAliases = []struct{ name, of string }{{ColSignedID, segment.ColSeriesID}, {ColMinMillis, ColMinTS}, {ColMaxMillis, ColMaxTS}}

// seriesGroupRows is how many series a row group of series.parquet holds at most.
const seriesGroupRows = 32 << 10

// writeSeries writes series.parquet and returns its table and its label columns.
func writeSeries(files Files, z *zstd.Encoder, limit int, v *series.View, rows *entries) (*table, *segment.SeriesColumns, error) {
	labels := &segment.SeriesColumns{}
	labels.Plan(v, rows.refs)
	s := parquetfile.NewSchema("promlake_series")
	labels.Schema(s)
	for _, name := range seriesFigures {
		if name == ColMinTS || name == ColMaxTS {
			s.Add(parquetfile.Timestamp(name))
		} else {
			s.Add(parquetfile.Bare(name, format.Int64))
		}
	}
	for _, a := range seriesAliases {
		s.Add(parquetfile.Bare(a.name, format.Int64))
	}
	w := seriesWriter{
		table: newTable(files, z, func(int) string { return SeriesFile }, math.MaxInt64, s), view: v, labels: labels,
	}
	if err := w.begin(); err != nil {
		return nil, nil, err
	}
	for from := 0; from < rows.len(); from += limit {
		if err := w.group(rows, from, min(from+limit, rows.len())); err != nil {
			return nil, nil, err
		}
	}
	return w.table, labels, w.end()
}

// seriesWriter writes series.parquet.
type seriesWriter struct {
	*table
	view        *series.View
	labels      *segment.SeriesColumns
	float, hist int64 // rows of the series that are written

	// of a row group; the next one uses their memory
	ids  []uint64
	cols [][7]int64
	vals []int64
}

// group writes the rows from one to another as a row group.
func (w *seriesWriter) group(rows *entries, from, to int) error {
	n := to - from
	w.ids, w.cols, w.vals = slices.Grow(w.ids[:0], n)[:n], slices.Grow(w.cols[:0], n)[:n], slices.Grow(w.vals[:0], n)[:n]
	ids, cols, vals := w.ids, w.cols, w.vals
	v, refs := w.view, rows.refs[from:to]
	g := RowGroup{
		Rows: int64(n), FirstMetric: v.Metrics[v.Metric(refs[0])], LastMetric: v.Metrics[v.Metric(refs[len(refs)-1])],
		FirstSeries: w.rows, LastSeries: w.rows + int64(n) - 1, MinT: math.MaxInt64, MaxT: math.MinInt64,
	}
	for i := range n {
		e := rows.at(from+i, v)
		ids[i] = e.id
		cols[i] = [...]int64{w.float, int64(e.floats), w.hist, int64(e.hists), int64(e.exemplars), e.minT, e.maxT}
		w.float += int64(e.floats)
		w.hist += int64(e.hists)
		g.MinT, g.MaxT = min(g.MinT, e.minT), max(g.MaxT, e.maxT)
	}
	w.labels.Write(w.pq, &w.s, v, refs, ids)
	for c, name := range seriesFigures {
		for i := range cols {
			vals[i] = cols[i][c]
		}
		w.pq.Add(parquetfile.Int64s(name, &w.s, vals))
	}
	for _, a := range seriesAliases {
		w.pq.Alias(a.name, a.of)
	}
	return w.endGroup(g)
}

// entry is a row of the series table.
type entry struct {
	id                       uint64
	minT, maxT               int64
	ref                      series.Ref
	floats, hists, exemplars uint32
}

func (e *entry) see(first, last int64) { e.minT, e.maxT = min(e.minT, first), max(e.maxT, last) }

// entries are the rows of the series table. A block may have millions, and most have neither
// histograms nor exemplars, and the identifier of their labels: those take 24 bytes.
type entries struct {
	refs   []series.Ref
	floats []uint32
	times  [][2]int64        // minT and maxT
	rest   [][2]uint32       // histograms and exemplars; nil: no row has any
	moved  map[uint32]uint64 // by row: its identifier, if it is not that of its labels
}

func (s *entries) len() int { return len(s.refs) }

// add appends a row. id is the identifier of its labels.
func (s *entries) add(e *entry, id uint64) {
	n := len(s.refs)
	s.refs, s.floats, s.times = append(s.refs, e.ref), append(s.floats, e.floats), append(s.times, [2]int64{e.minT, e.maxT})
	if s.rest == nil && e.hists|e.exemplars != 0 {
		s.rest = make([][2]uint32, n, cap(s.refs))
	}
	if s.rest != nil {
		s.rest = append(s.rest, [2]uint32{e.hists, e.exemplars})
	}
	if e.id != id {
		s.moved[uint32(n)] = e.id
	}
}

// at returns a row, whose labels are in v.
func (s *entries) at(i int, v *series.View) entry {
	e := entry{ref: s.refs[i], id: v.ID(s.refs[i]), floats: s.floats[i], minT: s.times[i][0], maxT: s.times[i][1]}
	if s.rest != nil {
		e.hists, e.exemplars = s.rest[i][0], s.rest[i][1]
	}
	if id, ok := s.moved[uint32(i)]; ok {
		e.id = id
	}
	return e
}

// idSet makes identifiers unique within a block: of label sets with equal hashes, each later one in
// block order gets the next free identifier. It is a hash table with linear probing. The place of
// an identifier depends on a random number, so that a sender cannot choose label sets whose places
// collide.
type idSet struct {
	mask  uint64   // bits of the hash that count: all, but in tests
	slots []uint64 // identifiers plus one; 0 = empty
	n     int
	full  bool // the largest identifier, which has no place in slots, is taken
	odd   uint64
}

// newIDSet returns a set with room for n identifiers.
func newIDSet(mask uint64, n int) idSet {
	slots := 64
	for 4*n > 3*slots {
		slots *= 2
	}
	return idSet{mask: mask, slots: make([]uint64, slots), odd: rand.Uint64() | 1}
}

func (s *idSet) assign(hash uint64) uint64 {
	id := hash & s.mask
	for !s.take(id) {
		id++
	}
	return id
}

// take adds an identifier and reports whether it was free.
func (s *idSet) take(id uint64) bool {
	if id+1 == 0 {
		free := !s.full
		s.full = true
		return free
	}
	at := s.place(id)
	if s.slots[at] != 0 {
		return false
	}
	s.slots[at] = id + 1
	s.n++
	if 4*s.n > 3*len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, 2*len(old))
		for _, x := range old {
			if x != 0 {
				s.slots[s.place(x-1)] = x
			}
		}
	}
	return true
}

// place returns the slot of an identifier, or the empty one that it would have.
func (s *idSet) place(id uint64) uint64 {
	last := uint64(len(s.slots) - 1)
	at := id * s.odd >> (64 - uint(bits.Len64(last)))
	for s.slots[at] != 0 && s.slots[at] != id+1 {
		at = (at + 1) & last
	}
	return at
}
