package merge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/live"
)

// Gather makes one source of many segments that follow one another in rank. It keeps their samples
// series by series, those that change mostly in two to three bytes each instead of sixteen, and a
// merge reads each series once. It takes only float samples without start timestamps.
type Gather struct {
	floatsOnly
	in      *Into
	batch   segment.Batch // of the last segment
	through ulid.ULID     // the least of all segments
	refs    []series.Ref  // by stream
	index   []uint32      // by reference: one more than its stream; 0: it has none
	streams streams
	buf     []byte
}

// NewGather returns a Gather of nothing.
func NewGather(in *Into) *Gather { return &Gather{in: in} }

// Gathers reports whether a Gather takes a segment.
func Gathers(f *segment.File) bool { return !f.HasST() && !f.HasRest() }

// Add decodes the series of a segment that are in the slice, and adds them. Gathers must report true
// of it. through is as in Segment, but no tombstone may apply to the segment. Errors:
// segment.ErrFormat.
func (g *Gather) Add(name string, f *segment.File, through ulid.ULID) ([]segment.Metadata, error) {
	if !Gathers(f) {
		return nil, fmt.Errorf("gather %s: %w: it has more than floats", name, segment.ErrFormat)
	}
	b := &g.batch
	if err := g.in.decoder().Into(b, f); err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	if len(g.refs) == 0 && len(b.TS) > 0 {
		g.streams.base = b.TS[0]
	}
	if g.through == (ulid.ULID{}) || through.Compare(g.through) < 0 {
		g.through = through
	}
	begin := 0
	for i, r := range b.Rows {
		end := b.End[i]
		if r != series.None && end > begin {
			x := g.stream(r)
			if g.streams.tails[x].n > maxSamples {
				return nil, fmt.Errorf("gather samples: a series has more than the limit of %d", maxSamples)
			}
			g.streams.append(x, b.TS[begin:end], b.V[begin:end])
		}
		begin = end
	}
	return b.Metadata, nil
}

// stream returns the stream of a series.
func (g *Gather) stream(r series.Ref) uint32 {
	if int(r) < len(g.index) && g.index[r] > 0 {
		return g.index[r] - 1
	}
	if n := int(r) + 1 - len(g.index); n > 0 {
		g.index = append(g.index, make([]uint32, n)...)
	}
	x := g.streams.open()
	g.refs, g.index[r] = append(g.refs, r), x+1
	return x
}

// Bytes returns the memory of the samples, in addition to that of their labels.
func (g *Gather) Bytes() int64 {
	return int64(len(g.streams.slabs))*slabBytes + int64(cap(g.streams.tails))*int64(unsafe.Sizeof(tail{})) + 4*int64(cap(g.refs)+cap(g.index))
}

// Source returns the source. Nothing is added afterwards.
func (g *Gather) Source(name string) *Source {
	g.batch, g.index = segment.Batch{}, nil
	return &Source{name: name, refs: g.refs, mixed: true, through: g.through, content: g}
}

// floats implements content. The i-th row is the i-th stream.
func (g *Gather) floats(r row, dst *live.Run) error {
	dst.TS, dst.V, g.buf = g.streams.read(uint32(r.floatAt), dst.TS, dst.V, g.buf)
	return nil
}

// readFloats reads the floats of all rows, one row after the other.
func (m *merger) readFloats() error {
	f := &m.floats
	f.Reset()
	for _, a := range m.rows {
		f.Begin(int(a.source))
		s, from := m.sources[a.source], len(f.TS)
		r := s.row(a.row)
		if r.floats == 0 {
			continue
		}
		if err := s.content.floats(r, &f.Run); err != nil {
			return s.fail(err)
		}
		m.stats.Read += int64(len(f.TS) - from)
		if s.mixed {
			f.Divide(from)
		}
		if !m.hasST {
			f.ST = nil
		} else { // a source without start timestamps
			known := len(f.ST)
			f.ST = slices.Grow(f.ST, len(f.TS)-known)[:len(f.TS)]
			clear(f.ST[known:])
		}
		m.stats.Deleted += int64(f.Cut(from, m.gone(a.source)))
	}
	return nil
}

// histRuns are the histograms of all rows of a series, one row after the other.
type histRuns struct {
	samples []segment.Hist
	sources []int // aligned with samples
}

// inOrder reports whether the timestamps ascend, each once.
func (h *histRuns) inOrder() bool {
	for i := 1; i < len(h.samples); i++ {
		if h.samples[i-1].T >= h.samples[i].T {
			return false
		}
	}
	return true
}

// readHists reads the histograms of all rows.
func (m *merger) readHists() (err error) {
	h := &m.hists
	clear(h.samples) // releases those of the series before
	h.samples, h.sources = h.samples[:0], h.sources[:0]
	for _, a := range m.rows {
		s := m.sources[a.source]
		if s.rest == nil || s.rest[a.row].hists == 0 {
			continue
		}
		from := len(h.samples)
		if h.samples, err = s.content.hists(&s.rest[a.row], h.samples); err != nil {
			return s.fail(err)
		}
		m.stats.Read += int64(len(h.samples) - from)
		if gone := m.gone(a.source); len(gone) > 0 {
			kept := slices.DeleteFunc(h.samples[from:], func(x segment.Hist) bool { return live.Within(x.T, gone) })
			m.stats.Deleted += int64(len(h.samples) - from - len(kept))
			h.samples = h.samples[:from+len(kept)]
		}
		for range h.samples[from:] {
			h.sources = append(h.sources, int(a.source))
		}
	}
	return nil
}

// mixer merges the histograms of a series with each other and with its floats.
type mixer struct {
	samples []live.Sample
	floats  live.Run
	hists   []segment.Hist
}

func (x *mixer) merge(m *merger) {
	x.samples = m.floats.Samples(x.samples[:0])
	for i := range m.hists.samples {
		x.samples = append(x.samples, live.Sample{T: m.hists.samples[i].T, Object: m.hists.sources[i], Hist: true, At: i})
	}
	x.floats.Reset()
	clear(x.hists)
	x.hists = x.hists[:0]
	for _, s := range live.Pick(x.samples) {
		if s.Hist {
			x.hists = append(x.hists, m.hists.samples[s.At])
		} else {
			x.floats.Append(m.floats.Slice(s.At, s.At+1))
		}
	}
	m.out.TS, m.out.V, m.out.ST, m.out.Hists = x.floats.TS, x.floats.V, x.floats.ST, x.hists
	if !m.hasST {
		m.out.ST = nil
	}
}

// readExemplars reads the exemplars of all rows into out, ascending in time, equal ones once.
// Tombstones delete exemplars as they delete samples.
func (m *merger) readExemplars() (err error) {
	out := m.out.Exemplars
	clear(out)
	out = out[:0]
	for _, a := range m.rows {
		s := m.sources[a.source]
		if s.rest == nil || s.rest[a.row].exemplars == 0 {
			continue
		}
		from := len(out)
		if out, err = s.content.exemplars(&s.rest[a.row], out); err != nil {
			return s.fail(err)
		}
		if gone := m.gone(a.source); len(gone) > 0 {
			kept := slices.DeleteFunc(out[from:], func(e exemplar.Exemplar) bool { return live.Within(e.Ts, gone) })
			out = out[:from+len(kept)]
		}
	}
	slices.SortStableFunc(out, compareExemplars)
	m.out.Exemplars = slices.CompactFunc(out, func(a, b exemplar.Exemplar) bool { return compareExemplars(a, b) == 0 })
	return nil
}

// compareExemplars orders by time, then by value and labels, so that equal ones are neighbours and
// the result does not depend on the order of the sources.
func compareExemplars(a, b exemplar.Exemplar) int {
	return cmp.Or(cmp.Compare(a.Ts, b.Ts), cmp.Compare(math.Float64bits(a.Value), math.Float64bits(b.Value)), labels.Compare(a.Labels, b.Labels))
}
