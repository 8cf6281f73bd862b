// Package merge puts the series of several live objects of one range of time together, series by series, in block order. Of equal
// timestamps the sample of the object with the highest rank counts, float or histogram, as it does for queries over the same objects.
package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/series"
)

// ErrOrder reports a source whose series do not come in block order.
var ErrOrder = errors.New("series are not in block order")

// Sink takes the merged series in block order. It does not keep the slices.
type Sink interface {
	Append(ref series.Ref, s *block.Samples) error
}

// Stats say what a merge read and wrote. Samples are float and histogram samples.
type Stats struct {
	Read    int64 // samples of the sources
	Series  int64 // written
	Samples int64 // written
	Deleted int64 // samples that tombstones covered
}

// checkEvery is the number of samples between two looks at the context and calls of progress.
const checkEvery = 1 << 18

// Merge writes the series of sources, ascending by rank, whose label sets are all in table, to sink. Series that end empty are left
// out. progress, if not nil, is called now and then with the samples read so far.
func Merge(ctx context.Context, table *series.Table, sources []*Source, sink Sink, progress func(samples int64)) (Stats, error) {
	view := table.View()
	deletes, err := newDeletes(&view, sources)
	if err != nil {
		return Stats{}, err
	}
	m := &merger{view: &view, sources: sources, deletes: deletes}
	for _, s := range sources {
		m.hasST = m.hasST || s.hasST
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

// merger is one call of Merge. Its buffers are used anew for every series.
type merger struct {
	view    *series.View
	sources []*Source
	deletes *deletes
	hasST   bool // some source knows start timestamps
	stats   Stats

	rows  []at // of the current series, by rank
	run   Run  // the floats of all rows, one after the other
	marks []int
	spare Run // the other buffer of mergeRuns
	hists histRuns
	mixed mixer
	out   block.Samples
}

// at is a row of a source.
type at struct {
	source int
	row    int
}

// order returns the references of all rows in block order, each once, and turns each source's rows into that order.
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
	slices.SortFunc(refs, func(a, b series.Ref) int { return series.ComparePriority(m.view, a, b) })
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
	m.rows = m.rows[:0]
	for i, s := range m.sources {
		if s.next < len(s.rows) && s.rows[s.next].ref == ref {
			m.rows = append(m.rows, at{i, s.next})
			s.next++
		}
	}
	m.deletes.begin(ref)
	if err := m.floats(); err != nil {
		return err
	}
	if err := m.histograms(); err != nil {
		return err
	}
	if err := m.exemplars(); err != nil {
		return err
	}
	m.settle()
	if len(m.out.TS)+len(m.out.Hists)+len(m.out.Exemplars) == 0 {
		return nil
	}
	m.stats.Series++
	m.stats.Samples += int64(len(m.out.TS) + len(m.out.Hists))
	return sink.Append(ref, &m.out)
}

// settle leaves in out what counts of floats and histograms.
func (m *merger) settle() {
	switch {
	case len(m.hists.samples) == 0:
		m.mergeRuns()
		m.out.TS, m.out.V, m.out.ST, m.out.Hists = m.run.TS, m.run.V, m.run.ST, nil
	case len(m.run.TS) == 0 && m.hists.inOrder():
		m.out.TS, m.out.V, m.out.ST, m.out.Hists = nil, nil, nil, m.hists.samples
	default:
		m.mixed.merge(m)
	}
}
