package merge

import (
	"fmt"
	"unsafe"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/live"
)

// Gather makes one source of many segments that follow one another in rank. It keeps their samples
// series by series, those that change mostly in two to three bytes each instead of sixteen, and a
// merge reads each series once. It takes only float samples without start timestamps.
type Gather struct {
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

func (*Gather) hists(_ *rest, dst []segment.Hist) ([]segment.Hist, error) { return dst, nil }

func (*Gather) exemplars(_ *rest, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error) {
	return dst, nil
}
