// Package recent keeps the content of segments that this process has stored lately, so that a
// compactor of the same process merges them without reading and decoding their objects, and queries
// share their samples.
package recent

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Labels are the label sets of the segments that were written from one table. The latest view alone
// is kept: earlier ones would keep the arrays that the table has outgrown. They are safe for
// concurrent use.
type Labels struct {
	latest atomic.Pointer[series.View]

	mu    sync.Mutex
	order *series.Order // of blocks; nil until it is needed
}

// NewLabels returns the label sets of a view.
func NewLabels(v *series.View) *Labels {
	l := &Labels{}
	l.Extend(v)
	return l
}

// Extend adds the label sets of a later view of the same table.
func (l *Labels) Extend(v *series.View) { l.latest.Store(v) }

// View returns a view that has the label sets of all segments so far.
func (l *Labels) View() *series.View { return l.latest.Load() }

// Sort sorts distinct label sets in the order of blocks (series.ComparePriority). The first call
// sorts the whole table, later ones what is new.
func (l *Labels) Sort(refs []series.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.order == nil {
		l.order = series.NewPriorityOrder()
	}
	l.order.Extend(l.View())
	l.order.Sort(refs)
}

// Segment is the content of a segment in little memory: equal to what segment.Decode reads from the
// object, with the label sets of the table that the segment was written from. It is immutable.
type Segment struct {
	Labels *Labels
	Rows   []series.Ref // strictly ascending in the order of View.Compare
	V      []float64    // of the float samples, row by row
	ST     []int64      // ms, 0 = unknown; nil if all are unknown

	Hists     []segment.RowHists
	Exemplars []segment.RowExemplars
	Metadata  []segment.Metadata // sorted by Metric

	ends []uint32 // by row, of its float samples; nil: each row has one
	base int64    // ms; the earliest float sample
	near []uint16 // by float sample: ms after base; nil if far is set
	far  []uint32 // the same where 16 bits are not enough
	more int64    // memory of histograms, exemplars and metadata, about; bytes
}

// compact returns the content of a batch, or nil if it does not fit into the smaller integers.
func compact(b *segment.Batch, l *Labels) (*Segment, error) {
	if len(b.V) > math.MaxUint32 {
		return nil, nil
	}
	read, err := b.ReadBack()
	if err != nil {
		return nil, err
	}
	m := columnsFor(len(b.V), len(b.Rows))
	s := &Segment{
		Labels: l, Rows: append(m.rows, b.Rows...), V: append(m.values, b.V...), ST: slices.Clone(b.ST),
		Hists: read.Hists, Exemplars: read.Exemplars, Metadata: read.Metadata, near: m.near,
	}
	if !s.times(b.TS) {
		return nil, nil
	}
	s.setEnds(b.End)
	// The rest of the segment's memory is estimated.
	const perHist, perBucket, perExemplar = 256, 16, 192
	for _, r := range s.Hists {
		for _, h := range r.Samples {
			s.more += perHist
			if h.FH != nil {
				s.more += perBucket * int64(len(h.FH.PositiveBuckets)+len(h.FH.NegativeBuckets)+len(h.FH.PositiveSpans)+len(h.FH.NegativeSpans)+len(h.FH.CustomValues))
			} else {
				s.more += perBucket * int64(len(h.H.PositiveBuckets)+len(h.H.NegativeBuckets)+len(h.H.PositiveSpans)+len(h.H.NegativeSpans)+len(h.H.CustomValues))
			}
		}
	}
	for _, r := range s.Exemplars {
		s.more += perExemplar * int64(len(r.Exemplars))
	}
	for i := range s.Metadata {
		s.more += descriptionBytes(&s.Metadata[i])
	}
	return s, nil
}

// times stores the times of the float samples, and reports whether it could.
func (s *Segment) times(ts []int64) bool {
	if len(ts) == 0 {
		s.near = nil
		return true
	}
	first, last := slices.Min(ts), slices.Max(ts)
	s.base = first
	switch span := uint64(last) - uint64(first); {
	case span <= math.MaxUint16:
		s.near = slices.Grow(s.near[:0], len(ts))[:len(ts)]
		for i, t := range ts {
			s.near[i] = uint16(t - first)
		}
	case span <= math.MaxUint32:
		s.near, s.far = nil, make([]uint32, len(ts))
		for i, t := range ts {
			s.far[i] = uint32(t - first)
		}
	default:
		return false
	}
	return true
}

// setEnds stores the ends of rows unless each has one sample, as scrapes have.
func (s *Segment) setEnds(ends []int) {
	single := true
	for i, e := range ends {
		single = single && e == i+1
	}
	if single {
		return
	}
	s.ends = make([]uint32, len(ends))
	for i, e := range ends {
		s.ends[i] = uint32(e)
	}
}

// descriptionBytes is the memory of a description.
func descriptionBytes(m *segment.Metadata) int64 {
	const own = 96
	return own + int64(len(m.Metric)+len(m.Type)+len(m.Help)+len(m.Unit))
}

// End returns the end of a row's float samples; they begin at the end of the row before it.
func (s *Segment) End(row int) int {
	if s.ends == nil {
		return row + 1
	}
	return int(s.ends[row])
}

// Single reports whether each row has one float sample.
func (s *Segment) Single() bool { return s.ends == nil }

// Scraped returns the times of the float samples, by row in ms after base, of a segment in which
// each row has one and nothing else, as after a scrape. Of others near is nil. Callers must not
// change it.
func (s *Segment) Scraped() (base int64, near []uint16) {
	if !s.Single() || len(s.Hists)+len(s.Exemplars) > 0 {
		return 0, nil
	}
	return s.base, s.near
}

// AppendTimes appends the times (ms) of the float samples [from, to).
func (s *Segment) AppendTimes(dst []int64, from, to int) []int64 {
	if s.far != nil {
		for _, t := range s.far[from:to] {
			dst = append(dst, s.base+int64(t))
		}
		return dst
	}
	for _, t := range s.near[from:to] {
		dst = append(dst, s.base+int64(t))
	}
	return dst
}

// Samples returns the number of float and histogram samples.
func (s *Segment) Samples() int64 {
	n := int64(len(s.V))
	for i := range s.Hists {
		n += int64(len(s.Hists[i].Samples))
	}
	return n
}

// bytes is the memory of the segment without the label sets, which the writer has too.
func (s *Segment) bytes() int64 {
	const own = 384
	return own + int64(4*cap(s.Rows)+8*cap(s.V)+8*cap(s.ST)+4*len(s.ends)+2*cap(s.near)+4*len(s.far)) + s.more
}

// Time returns the time (ms) of a float sample.
func (s *Segment) Time(i int) int64 {
	if s.far != nil {
		return s.base + int64(s.far[i])
	}
	return s.base + int64(s.near[i])
}

// Floats reports whether there is nothing but float samples and metadata.
func (s *Segment) Floats() bool { return s.ST == nil && len(s.Hists)+len(s.Exemplars) == 0 }

// columns is memory of a segment. Once the segment is stored and a head has its samples, the next
// segment uses the memory.
type columns struct {
	rows   []series.Ref
	values []float64
	near   []uint16
}

var spareColumns = memory.NewPool(4, func(c columns) int { return cap(c.values) })

// columnsFor returns empty columns for a segment with so many float samples and rows. They are not
// much larger than these: a segment that no head takes keeps them until it is merged.
func columnsFor(samples, rows int) columns {
	if c, ok := spareColumns.Get(samples); ok {
		if fits(cap(c.values), samples) && fits(cap(c.rows), rows) {
			return c
		}
		spareColumns.Put(c)
	}
	return columns{rows: make([]series.Ref, 0, rows), values: make([]float64, 0, samples)}
}

func fits(room, n int) bool { return n <= room && room <= 2*n }
