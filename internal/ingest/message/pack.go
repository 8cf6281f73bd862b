package message

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// packer writes the columns of a message: the samples of a batch, column by column
// (schemas/message.md). Senders repeat their series scrape after scrape and target after target, so
// the columns, in the order in which the samples came, hold little else than repetitions, which
// zstd compresses to almost nothing. A packer is reused; one goroutine at a time uses it.
type packer struct {
	view    series.View
	out     []byte
	frame   []byte       // zstd frame of out
	numbers []uint32     // by series.Ref: the number of the series in the message plus one; 0 = not in it
	series  []series.Ref // by number
	columns []column     // of the metric, and by name ordinal of the view plus one
	used    []uint32     // columns in the message
	shapes  []shape
	byNames map[string]uint32 // shapes by nameKey
	nameKey []byte
	kinds   []byte // the shape of each series
	rows    []byte // the values of each series
	floats  []byte // the series of the float samples
	rest    []byte // histograms and exemplars
}

// column is the values of one label name.
type column struct {
	name    string
	values  []string // by value ordinal
	number  uint32   // of the name in the message plus one; 0 = not in it
	numbers []uint32 // by value ordinal: the number of the value in the message plus one; 0 = not in it
	used    []uint32 // value ordinals by number
	last    uint32   // number of the value in the last series with this name
}

// shape is a set of label names.
type shape struct {
	names  []uint32 // name ordinals, without that of the metric
	metric int      // how many of them sort before the metric's
	next   uint32   // the shape that followed this one last
}

var packers = sync.Pool{New: func() any { return &packer{byNames: map[string]uint32{}} }}

// metricColumn is the column of __name__, which a view keeps apart.
const metricColumn = 0

// pack returns the columns of a batch, valid until the packer is used again.
func (p *packer) pack(b *remotewrite.Batch) ([]byte, error) {
	t := b.Generation.Table
	t.RLock()
	p.view = t.View()
	t.RUnlock()
	defer p.reset()
	p.numbers = zeros(p.numbers, p.view.Len())
	if n := len(p.view.Names) + 1 - len(p.columns); n > 0 {
		p.columns = append(p.columns, make([]column, n)...)
	}
	var err error
	// The series of the float samples: the number of runs, and the series and the length of
	// each run.
	dst := p.floats[:0]
	n := 0
	for i := range b.Floats {
		if i == 0 || b.Floats[i].Ref != b.Floats[i-1].Ref {
			n++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	expected := uint32(0)
	for from := 0; from < len(b.Floats); {
		to := from + 1
		for to < len(b.Floats) && b.Floats[to].Ref == b.Floats[from].Ref {
			to++
		}
		dst, expected = p.step(dst, b.Floats[from].Ref, expected)
		dst = binary.AppendUvarint(dst, uint64(to-from))
		from = to
	}
	p.floats = dst
	if p.rest, err = p.histograms(p.rest[:0], b.Hists); err != nil {
		return nil, err
	}
	p.rest = p.exemplars(p.rest, b.Exemplars)
	p.out = append(p.labels(p.out[:0]), p.floats...)
	p.out = append(appendFloats(p.out, b), p.rest...)
	p.out = binary.AppendUvarint(p.out, uint64(len(b.Metadata)))
	for _, m := range b.Metadata {
		for _, s := range [...]string{m.Metric, m.Type, m.Help, m.Unit} {
			p.out = remotewrite.AppendKey(p.out, s)
		}
	}
	return p.out, nil
}

// zeros extends s, whose elements are all zero, to at least n elements.
func zeros(s []uint32, n int) []uint32 {
	if n > len(s) {
		s = append(s, make([]uint32, n-len(s))...)
	}
	return s
}

// A packer that has seen more than these is left to the garbage collector instead of the pool.
const (
	keepSeries = 1 << 20 // known series
	keepNames  = 1 << 12 // label names
	keepBytes  = 4 << 20 // bytes of columns
)

// reset forgets the message and the view, and zeroes the numbers that it gave.
func (p *packer) reset() {
	for _, r := range p.series {
		p.numbers[r] = 0
	}
	for _, i := range p.used {
		c := &p.columns[i]
		for _, v := range c.used {
			c.numbers[v] = 0
		}
		*c = column{numbers: c.numbers, used: c.used[:0]}
	}
	clear(p.byNames)
	p.view, p.series, p.used, p.shapes = series.View{}, p.series[:0], p.used[:0], p.shapes[:0]
	p.kinds, p.rows = p.kinds[:0], p.rows[:0]
}

func (p *packer) release() {
	if len(p.numbers) <= keepSeries && len(p.columns) <= keepNames && cap(p.out) <= keepBytes {
		packers.Put(p)
	}
}

// number returns the number of a series in the message.
func (p *packer) number(r series.Ref) uint32 {
	n := p.numbers[r]
	if n == 0 {
		p.series = append(p.series, r)
		n = uint32(len(p.series))
		p.numbers[r] = n
	}
	return n - 1
}

// step appends the number of a series as its distance from the expected one. It returns the number
// that is expected next.
func (p *packer) step(dst []byte, r series.Ref, expected uint32) ([]byte, uint32) {
	n := p.number(r)
	return binary.AppendVarint(dst, int64(n)-int64(expected)), n + 1
}

// appendFloats appends the columns of the float samples: times, values, and start timestamps if
// any.
func appendFloats(dst []byte, b *remotewrite.Batch) []byte {
	last := int64(0)
	for i := range b.Floats {
		dst = binary.AppendVarint(dst, b.Floats[i].T-last)
		last = b.Floats[i].T
	}
	for i := range b.Floats {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(b.Floats[i].V))
	}
	if b.Starts == nil {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	last = 0
	for _, st := range b.Starts {
		dst = binary.AppendVarint(dst, st-last)
		last = st
	}
	return dst
}

func (p *packer) histograms(dst []byte, hs []remotewrite.Hist) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(len(hs)))
	expected := uint32(0)
	for i := range hs {
		dst, expected = p.step(dst, hs[i].Ref, expected)
		b, err := segment.EncodeHist(hs[i].Hist)
		if err != nil {
			return nil, err
		}
		dst = remotewrite.AppendKey(dst, b)
	}
	return dst, nil
}

func (p *packer) exemplars(dst []byte, es []remotewrite.Exemplar) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(es)))
	expected, t := uint32(0), int64(0)
	for i := range es {
		e := &es[i]
		dst, expected = p.step(dst, e.Ref, expected)
		dst = binary.AppendVarint(dst, e.Ts-t)
		t = e.Ts
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(e.Value))
		dst = binary.AppendUvarint(dst, uint64(e.Labels.Len()))
		e.Labels.Range(func(l labels.Label) { dst = remotewrite.AppendKey(remotewrite.AppendKey(dst, l.Name), l.Value) })
	}
	return dst
}
