package query

import (
	"fmt"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/segment"
)

// collector gathers the series of a scan: one memSeries per distinct label set, with what every object says about it.
type collector struct {
	scan       *scan
	settings   *Settings
	mint, maxt int64 // ms, inclusive
	unread     int64 // ms: samples up to here may be missing; below mint
	deletions  deletions

	identity *identifier
	index    map[seriesKey]*memSeries
	series   []*memSeries // in order of discovery
	places   []places     // by object: what to read from blocks
	size     int          // samples held; a histogram counts as its bytes / 16
}

// memSeries is a series while it is read.
type memSeries struct {
	labels labels.Labels
	tombs  []int // the tombstones that select it
	floats []fragment
	hists  []histPoint
}

// batch holds float samples in range of one chunk, series after series.
type batch struct {
	t  []int64 // ms
	v  []float64
	st []int64 // ms; nil = all unknown
}

// fragment is samples of one series in one object: batch.t[off:off+n], ascending. Of equal timestamps the larger rank wins.
type fragment struct {
	batch  *batch
	off, n uint32
	rank   uint32 // position of the object in the order of ranks
}

// histPoint is one histogram sample; exactly one of h and fh is set.
type histPoint struct {
	rank  uint32 // as in fragment
	t, st int64
	h     *histogram.Histogram
	fh    *histogram.FloatHistogram
}

func newCollector(s *scan, settings *Settings, seed uint64, mint, maxt int64) *collector {
	return &collector{
		scan: s, settings: settings, mint: mint, maxt: maxt, unread: s.src.unread,
		identity: newIdentifier(s, seed), index: map[seriesKey]*memSeries{}, places: make([]places, len(s.src.objs)),
	}
}

// chunk takes the rows of a chunk.
func (c *collector) chunk(n int, cols []duck.Vector) error {
	c.identity.chunk(n, cols)
	rows := make([]*memSeries, n)
	if c.scan.want == labelsOnly {
		return c.lookup(rows, cols, nil)
	}
	spans, total := c.spans(cols, c.scan.ts)
	hists := c.histSpans(cols)
	if c.size+total > c.settings.MaxSamples {
		return c.settings.tooManySamples()
	}
	inBlock := c.inBlock(cols)
	keep := func(i int) bool {
		return spans != nil && spans[i].n > 0 || hists != nil && hists[i].n > 0 || inBlock != nil && inBlock(i)
	}
	if err := c.lookup(rows, cols, keep); err != nil {
		return err
	}
	c.size += total
	c.place(rows, cols)
	c.floats(rows, cols, spans, total)
	return c.histograms(rows, cols, hists)
}

// lookup fills rows with the series of the chunk's rows for which keep is true; nil keeps all.
func (c *collector) lookup(rows []*memSeries, cols []duck.Vector, keep func(i int) bool) error {
	for i := range rows {
		if keep != nil && !keep(i) {
			continue
		}
		k := c.identity.keys[i]
		s := c.index[k]
		if s == nil {
			if len(c.series) >= c.settings.MaxSeries {
				return c.settings.tooManySeries()
			}
			s = &memSeries{labels: c.identity.labels(i, cols)}
			s.tombs = c.deletions.matching(s.labels)
			c.index[k] = s
			c.series = append(c.series, s)
		}
		rows[i] = s
	}
	return nil
}

// span is a run of list elements.
type span struct{ from, n int }

// microsPerMilli: DuckDB reads TIMESTAMP_MS with a time zone as microseconds, always multiples of this.
const microsPerMilli = 1000

// spans finds the elements of each list of ascending timestamps in a column that are within the range, and their total number.
func (c *collector) spans(cols []duck.Vector, column int) (spans []span, total int) {
	if column < 0 {
		return nil, 0
	}
	ts := cols[column]
	lists, elems := ts.List()
	all := elems.Int64s()
	spans = make([]span, len(lists))
	for i, l := range lists {
		if !ts.Valid(i) {
			continue
		}
		list := all[l.Offset : l.Offset+l.Length]
		lo := sort.Search(len(list), func(j int) bool { return list[j] >= c.mint*microsPerMilli })
		hi := lo + sort.Search(len(list)-lo, func(j int) bool { return list[lo+j] > c.maxt*microsPerMilli })
		spans[i] = span{int(l.Offset) + lo, hi - lo}
		total += hi - lo
	}
	return spans, total
}

// histSpans finds the histograms in range, and before them the last one that is earlier: it tells whether a counter was reset.
func (c *collector) histSpans(cols []duck.Vector) []span {
	spans, _ := c.spans(cols, c.scan.histTS)
	if spans == nil {
		return nil
	}
	lists, _ := cols[c.scan.histTS].List()
	for i, sp := range spans {
		if cols[c.scan.histTS].Valid(i) && sp.from > int(lists[i].Offset) {
			spans[i] = span{sp.from - 1, sp.n + 1}
		}
	}
	return spans
}

// floats copies the float samples in range.
func (c *collector) floats(rows []*memSeries, cols []duck.Vector, spans []span, total int) {
	if total == 0 {
		return
	}
	_, elems := cols[c.scan.ts].List()
	times := elems.Int64s()
	valueLists, elems := cols[c.scan.value].List()
	values := elems.Float64s()
	tsLists, _ := cols[c.scan.ts].List()
	b := &batch{t: make([]int64, 0, total), v: make([]float64, 0, total)}
	var starts []int64
	var startLists []duck.Entry
	if c.scan.st >= 0 {
		startLists, elems = cols[c.scan.st].List()
		starts = elems.Int64s()
		b.st = make([]int64, total)
	}
	rank := cols[colFileIndex].Uint64s()
	for i, sp := range spans {
		if sp.n == 0 {
			continue
		}
		at := len(b.t)
		for _, t := range times[sp.from : sp.from+sp.n] {
			b.t = append(b.t, t/microsPerMilli)
		}
		skip := sp.from - int(tsLists[i].Offset) // the lists of a row are aligned, their elements need not be
		from := int(valueLists[i].Offset) + skip
		b.v = append(b.v, values[from:from+sp.n]...)
		if starts != nil && cols[c.scan.st].Valid(i) && startLists[i].Length == tsLists[i].Length {
			from := int(startLists[i].Offset) + skip
			for j, t := range starts[from : from+sp.n] {
				b.st[at+j] = t / microsPerMilli
			}
		}
		rows[i].take(fragment{b, uint32(at), uint32(sp.n), uint32(rank[i])}, &c.deletions)
	}
}

// take adds what deletions leave of a fragment.
func (s *memSeries) take(f fragment, d *deletions) {
	s.floats = f.cut(s.floats, d.gone(int(f.rank), s))
}

// histogramUnit is the number of encoded bytes of a histogram that count as one sample.
const histogramUnit = 16

// histograms decodes the histogram samples in range.
func (c *collector) histograms(rows []*memSeries, cols []duck.Vector, spans []span) error {
	if spans == nil {
		return nil
	}
	tsLists, _ := cols[c.scan.histTS].List()
	lists, elems := cols[c.scan.hist].List()
	blobs := elems.Strings()
	rank := cols[colFileIndex].Uint64s()
	for i, sp := range spans {
		if sp.n == 0 {
			continue
		}
		from := int(lists[i].Offset) + sp.from - int(tsLists[i].Offset)
		gone := c.deletions.gone(int(rank[i]), rows[i])
		for j := from; j < from+sp.n; j++ {
			if err := c.histogram(rows[i], blobs[j].Bytes(), uint32(rank[i]), gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// histogram decodes one histogram sample of a series and adds it unless it is deleted.
func (c *collector) histogram(s *memSeries, b []byte, rank uint32, gone tombstones.Intervals) error {
	p, err := decodeHistogram(b, rank)
	if err != nil {
		return fmt.Errorf("read series %s: %w", s.labels, err)
	}
	if isDeleted(p.t, gone) {
		return nil
	}
	if c.size += 1 + len(b)/histogramUnit; c.size > c.settings.MaxSamples {
		return c.settings.tooManySamples()
	}
	s.hists = append(s.hists, p)
	return nil
}

// decodeHistogram reads a histogram sample.
func decodeHistogram(b []byte, rank uint32) (histPoint, error) {
	s, err := segment.DecodeHist(b)
	return histPoint{rank: rank, t: s.T, st: s.ST, h: s.H, fh: s.FH}, err
}
