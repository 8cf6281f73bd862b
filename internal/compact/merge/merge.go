// Package merge merges the series of several live objects of one range of time, series by series,
// in block order. Package live decides which of their samples count.
package merge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/live"
)

// ErrOrder reports a source whose series are not in block order.
var ErrOrder = errors.New("series are not in block order")

// Sink takes the merged series in block order. It does not keep the slices.
type Sink interface {
	Append(ref series.Ref, s *block.Samples) error
}

// Stats count what a merge read and wrote. Samples are float and histogram samples.
type Stats struct {
	Read    int64 // samples of the sources
	Series  int64 // written
	Samples int64 // written
	Deleted int64 // samples that tombstones covered
}

// checkEvery is the number of samples between two checks of the context and calls of progress.
const checkEvery = 1 << 18

// Merge writes the series of sources, ascending by rank, whose label sets are all in in, to sink,
// without the samples that tombs delete. It leaves out series that end empty. It calls progress, if
// not nil, now and then with the number of samples read so far. Errors: ErrOrder,
// catalog.ErrInvalid for a tombstone, and those of the sources, of sink and of ctx.
func Merge(ctx context.Context, in *Into, tombs []catalog.Tombstone, sources []*Source, sink Sink, progress func(samples int64)) (Stats, error) {
	m := &merger{in: in, view: in.View(), sources: sources, builder: labels.NewScratchBuilder(16)}
	through := make([]ulid.ULID, len(sources))
	for i, s := range sources {
		m.hasST = m.hasST || s.hasST
		through[i] = s.through
	}
	var err error
	if m.deletions, err = live.NewDeletions(tombs, through); err != nil {
		return Stats{}, err
	}
	order, err := m.order()
	if err != nil {
		return Stats{}, err
	}
	next, begin := int64(checkEvery), uint32(0)
	for i, ref := range order {
		if i%warmed == 0 {
			m.warm(order[i:min(i+warmed, len(order))], begin)
		}
		// The rows of the series, whose numbers ascend.
		placed := m.placed[begin:m.ends[ref]]
		m.rows = m.rows[:0]
		source := 0
		for _, n := range placed {
			if n >= m.starts[source+1] {
				source++ // mostly it is the next one
				if ends := m.starts[source+1:]; n >= ends[0] {
					source += sort.Search(len(ends), func(i int) bool { return ends[i] > n })
				}
			}
			m.rows = append(m.rows, at{uint32(source), n - m.starts[source]})
		}
		begin = m.ends[ref]
		if err := m.series(ref, sink); err != nil {
			return m.stats, err
		}
		if m.stats.Read < next {
			continue
		}
		next = m.stats.Read + checkEvery
		if err := ctx.Err(); err != nil {
			return m.stats, fmt.Errorf("merge: %w", err)
		}
		if progress != nil {
			progress(m.stats.Read)
		}
	}
	if progress != nil {
		progress(m.stats.Read)
	}
	return m.stats, nil
}

// merger is one call of Merge. Its buffers are reused for every series.
type merger struct {
	in        *Into
	view      *series.View
	sources   []*Source
	deletions live.Deletions
	starts    []uint32 // by source: the number of its first row, if the rows of all are numbered; and their total
	placed    []uint32 // the numbers of all rows: in block order, those of one series by rank
	ends      []uint32 // by reference: the end of its rows in placed
	hasST     bool     // some source knows start timestamps
	stats     Stats

	ref      series.Ref // the current series
	rows     []at       // its rows, by rank
	matched  bool       // matching is of it
	matching []int      // the tombstones that match it
	builder  labels.ScratchBuilder
	ivs      tombstones.Intervals
	floats   live.Floats
	hists    histRuns
	mixed    mixer
	out      block.Samples
	read     uint32 // of warm
}

// warmed is the number of series whose memory is read at once.
const warmed = 64

// warm reads the memory of the next series, whose rows begin at a position of m.placed: their label
// sets, and the samples if one source has them all.
func (m *merger) warm(next []series.Ref, begin uint32) {
	m.read += m.view.Warm(next)
	if len(m.sources) == 1 {
		if c, ok := m.sources[0].content.(waitingContent); ok {
			m.read += c.Warm(m.placed[begin:m.ends[next[len(next)-1]]])
		}
	}
}

// at is a row of a source, by their indices.
type at struct{ source, row uint32 }

// order returns the references of all rows in block order, each once, and makes m.placed.
func (m *merger) order() ([]series.Ref, error) {
	ends := make([]uint32, m.view.Len()) // by reference: its number of rows, then the end of its rows in placed
	total, distinct := 0, 0
	m.starts = make([]uint32, len(m.sources)+1)
	for i, s := range m.sources {
		for _, r := range s.refs {
			if ends[r] == 0 {
				distinct++
			}
			ends[r]++
		}
		total += len(s.refs)
		m.starts[i+1] = uint32(total)
	}
	if total > math.MaxUint32 {
		return nil, fmt.Errorf("sources with %d series: a merge takes %d, one per source and series", total, uint32(math.MaxUint32))
	}
	refs := make([]series.Ref, 0, distinct)
	for r, n := range ends {
		if n > 0 {
			refs = append(refs, series.Ref(r))
		}
	}
	m.in.sort(m.view, refs)
	begin := uint32(0)
	for _, r := range refs {
		n := ends[r]
		ends[r] = begin
		begin += n
	}
	m.placed, m.ends = make([]uint32, total), ends
	for i, s := range m.sources {
		if err := m.place(uint32(i), s); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// place adds the rows of a source to placed, those of sources before it being there. m.ends has, by
// reference, where the next row of the reference goes.
func (m *merger) place(source uint32, s *Source) error {
	last, start := int64(-1), m.starts[source]
	for i, r := range s.refs {
		to := m.ends[r]
		m.ends[r]++
		if s.sorted && int64(to) <= last {
			return fmt.Errorf("merge %s: %w: row %d", s.name, ErrOrder, i)
		}
		last = int64(to)
		if to > 0 {
			if b := int64(m.placed[to-1]) - int64(start); b >= 0 && b < int64(i) && s.refs[b] == r {
				return fmt.Errorf("merge %s: %w: row %d is of the series of row %d", s.name, ErrOrder, i, b)
			}
		}
		m.placed[to] = start + uint32(i)
	}
	return nil
}

// series merges one series, whose rows are m.rows, and writes it.
func (m *merger) series(ref series.Ref, sink Sink) error {
	m.ref, m.matched = ref, false
	if err := m.readFloats(); err != nil {
		return err
	}
	if err := m.readHists(); err != nil {
		return err
	}
	if err := m.readExemplars(); err != nil {
		return err
	}
	switch {
	case len(m.hists.samples) == 0:
		m.floats.Merge()
		m.out.TS, m.out.V, m.out.ST, m.out.Hists = m.floats.TS, m.floats.V, m.floats.ST, nil
	case len(m.floats.TS) == 0 && m.hists.inOrder():
		m.out.TS, m.out.V, m.out.ST, m.out.Hists = nil, nil, nil, m.hists.samples
	default:
		m.mixed.merge(m)
	}
	if len(m.out.TS)+len(m.out.Hists)+len(m.out.Exemplars) == 0 {
		return nil
	}
	m.stats.Series++
	m.stats.Samples += int64(len(m.out.TS) + len(m.out.Hists))
	return sink.Append(ref, &m.out)
}

// gone returns the deleted times of the current series in a source. They are valid until the next
// call.
func (m *merger) gone(source uint32) tombstones.Intervals {
	if !m.deletions.Concern(int(source)) {
		return nil
	}
	if !m.matched {
		m.matching = m.deletions.Matching(m.matching[:0], m.view.Labels(&m.builder, m.ref))
		m.matched = true
	}
	m.ivs = m.deletions.Gone(m.ivs[:0], int(source), m.matching)
	return m.ivs
}
