// Package merge merges the series of several live objects of one range of time, series by series,
// in block order. Package live decides which of their samples count.
package merge

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/live"
	"github.com/promlake/promlake/internal/series"
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

// Merge writes the series of sources, ascending by rank, whose label sets are all in table, to
// sink, without the samples that tombs delete. It leaves out series that end empty. It calls
// progress, if not nil, now and then with the number of samples read so far. Errors: ErrOrder,
// catalog.ErrInvalid for a tombstone, and those of the sources, of sink and of ctx.
func Merge(ctx context.Context, table *series.Table, tombs []catalog.Tombstone, sources []*Source, sink Sink, progress func(samples int64)) (Stats, error) {
	view := table.View()
	m := &merger{view: &view, sources: sources, builder: labels.NewScratchBuilder(16)}
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
	next := int64(checkEvery)
	for _, ref := range order {
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
	view      *series.View
	sources   []*Source
	deletions live.Deletions
	hasST     bool // some source knows start timestamps
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
}

// at is a row of a source.
type at struct {
	source int
	row    int
}

// order returns the references of all rows in block order, each once, and sorts each source's rows
// into that order.
func (m *merger) order() ([]series.Ref, error) {
	seen := make([]bool, m.view.Len())
	var refs []series.Ref
	for _, s := range m.sources {
		for i := range s.rows {
			if r := s.rows[i].ref; !seen[r] {
				seen[r] = true
				refs = append(refs, r)
			}
		}
	}
	series.SortPriority(m.view, refs)
	pos := make([]uint32, m.view.Len())
	for i, r := range refs {
		pos[r] = uint32(i)
	}
	for _, s := range m.sources {
		if err := s.arrange(pos); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// series merges one series and writes it.
func (m *merger) series(ref series.Ref, sink Sink) error {
	m.ref, m.matched, m.rows = ref, false, m.rows[:0]
	for i, s := range m.sources {
		if s.next < len(s.rows) && s.rows[s.next].ref == ref {
			m.rows = append(m.rows, at{i, s.next})
			s.next++
		}
	}
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
func (m *merger) gone(source int) tombstones.Intervals {
	if !m.deletions.Concern(source) {
		return nil
	}
	if !m.matched {
		m.matching = m.deletions.Matching(m.matching[:0], lset(&m.builder, m.view, m.ref))
		m.matched = true
	}
	m.ivs = m.deletions.Gone(m.ivs[:0], source, m.matching)
	return m.ivs
}
