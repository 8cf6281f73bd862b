package merge

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/internal/store/recent"
)

// Source is one live object, read once, series by series.
type Source struct {
	name    string       // for errors
	refs    []series.Ref // by row
	rows    []row        // aligned with refs; nil if the i-th row has the i-th float sample, as in a scrape, or if there is n
	n       []uint32     // aligned with refs: the number of float samples of the i-th row, which are at i in the content; or nil
	rest    []rest       // aligned with refs; nil if no row has histograms or exemplars
	sorted  bool         // the rows are in block order, in which the content must be read
	mixed   bool         // rows are of several objects, by rank: their times may descend, or be equal
	hasST   bool
	through ulid.ULID // the tombstones above it apply to the object
	content content
}

// row is how many float samples of a series a source has, and where they begin in the content.
type row struct {
	floats  uint32
	floatAt int64
}

// row returns the i-th row.
func (s *Source) row(i uint32) row {
	switch {
	case s.n != nil:
		return row{s.n[i], int64(i)}
	case s.rows == nil:
		return row{1, int64(i)}
	}
	return s.rows[i]
}

// rest is the same for the histograms and exemplars of a row.
type rest struct {
	hists, exemplars uint32
	histAt, exemplAt int64
}

// content reads the samples of rows, each row once, in block order if the source is sorted. The
// methods append.
type content interface {
	floats(r row, dst *live.Run) error
	hists(r *rest, dst []segment.Hist) ([]segment.Hist, error)
	exemplars(r *rest, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error)
}

// floatsOnly is the rest of a content without histograms and exemplars.
type floatsOnly struct{}

func (floatsOnly) hists(_ *rest, dst []segment.Hist) ([]segment.Hist, error) { return dst, nil }

func (floatsOnly) exemplars(_ *rest, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error) {
	return dst, nil
}

func (s *Source) fail(err error) error { return fmt.Errorf("merge %s: %w", s.name, err) }

// counts are the numbers of a row's samples, or where they begin in the content.
type counts struct{ floats, hists, exemplars int64 }

// rest returns what row i has of histograms and exemplars, of which n are those of the rows before,
// and counts it as read.
func (n *counts) rest(i int, hists []segment.RowHists, exemplars []segment.RowExemplars) (own counts) {
	if h := int(n.hists); h < len(hists) && hists[h].Row == i {
		own.hists = int64(len(hists[h].Samples))
		n.hists++
	}
	if e := int(n.exemplars); e < len(exemplars) && exemplars[e].Row == i {
		own.exemplars = int64(len(exemplars[e].Exemplars))
		n.exemplars++
	}
	return own
}

// reserve makes room for n rows.
func (s *Source) reserve(n int) { s.refs, s.rows = make([]series.Ref, 0, n), make([]row, 0, n) }

// add appends a row of n samples that begin at from in the content.
func (s *Source) add(ref series.Ref, n, from counts) error {
	if max(n.floats, n.hists, n.exemplars) > math.MaxUint32 || min(n.floats, n.hists, n.exemplars) < 0 {
		return fmt.Errorf("a series of %d floats, %d histograms and %d exemplars: none may be negative or above %d", n.floats, n.hists, n.exemplars, uint32(math.MaxUint32))
	}
	s.refs, s.rows = append(s.refs, ref), append(s.rows, row{uint32(n.floats), from.floats})
	if s.rest == nil && n.hists+n.exemplars > 0 {
		s.rest = make([]rest, len(s.rows)-1, cap(s.rows))
	}
	if s.rest != nil {
		s.rest = append(s.rest, rest{uint32(n.hists), uint32(n.exemplars), from.hists, from.exemplars})
	}
	return nil
}

// Into is the table that takes the label sets of sources, and which of them it takes. Its fields do
// not change once it took some.
type Into struct {
	Table *series.Table
	Slice catalog.Slice // of the series identifiers; the zero value is all
	// Known has the label sets of all sources already, which are of Recent. Table takes none then.
	Known *recent.Labels

	view     *series.View     // of Known, once it was asked for
	segments *segment.Decoder // made when it is first needed
}

// View returns the label sets of the sources, once all are open.
func (in *Into) View() *series.View {
	if in.Known == nil {
		v := in.Table.View()
		return &v
	}
	if in.view == nil {
		in.view = in.Known.View()
	}
	return in.view
}

// sort sorts distinct label sets of v in block order.
func (in *Into) sort(v *series.View, refs []series.Ref) {
	if in.Known != nil {
		in.Known.Sort(refs)
	} else {
		series.SortPriority(v, refs)
	}
}

// decoder returns what decodes segments.
func (in *Into) decoder() *segment.Decoder {
	if in.segments == nil {
		in.segments = segment.NewDecoder(in.Table, in.keep())
	}
	return in.segments
}

func (in *Into) whole() bool { return in.Slice.Of <= 1 }

// keep returns what chooses the label sets of the slice, nil for all.
func (in *Into) keep() func(id uint64) bool {
	if in.whole() {
		return nil
	}
	return in.Slice.Contains
}

// Descriptions are the descriptions of metric families, by metric.
type Descriptions map[string]segment.Metadata

// Add adds the descriptions of the next source, whose rank is higher than those of the sources
// before it: of each family, the last description counts.
func (d Descriptions) Add(ms []segment.Metadata) {
	for _, m := range ms {
		d[m.Metric] = m
	}
}

// Sorted returns the descriptions by metric.
func (d Descriptions) Sorted() []segment.Metadata {
	out := make([]segment.Metadata, 0, len(d))
	for _, name := range slices.Sorted(maps.Keys(d)) {
		out = append(out, d[name])
	}
	return out
}
