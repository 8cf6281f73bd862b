package merge

import (
	"fmt"
	"math"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/live"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
)

// Source is one live object, read once, series by series.
type Source struct {
	name    string // for errors
	rows    []row
	sorted  bool // the rows are in block order, in which the content must be read
	hasST   bool
	through ulid.ULID // the tombstones above it apply to the object
	content content
}

// row is one series of a source: how many samples it has, and where they begin in the content.
type row struct {
	ref                       series.Ref
	floats, hists, exemplars  uint32
	floatAt, histAt, exemplAt int64
}

// content reads the samples of rows, each row once, in block order if the source is sorted. The
// methods append.
type content interface {
	floats(r *row, dst *live.Run) error
	hists(r *row, dst []segment.Hist) ([]segment.Hist, error)
	exemplars(r *row, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error)
}

func (s *Source) fail(err error) error { return fmt.Errorf("merge %s: %w", s.name, err) }

// setCounts sets the numbers of a row's samples.
func (r *row) setCounts(floats, hists, exemplars int64) error {
	if max(floats, hists, exemplars) > math.MaxUint32 || min(floats, hists, exemplars) < 0 {
		return fmt.Errorf("a series of %d floats, %d histograms and %d exemplars: none may be negative or above %d", floats, hists, exemplars, uint32(math.MaxUint32))
	}
	r.floats, r.hists, r.exemplars = uint32(floats), uint32(hists), uint32(exemplars)
	return nil
}

// Into is the table that takes the label sets of sources, and which of them it takes. Its fields do
// not change once it took some.
type Into struct {
	Table *series.Table
	Slice catalog.Slice // of the series identifiers; the zero value is all

	segments *segment.Decoder // made when it is first needed
}

func (in *Into) whole() bool { return in.Slice.Of <= 1 }

// keep returns what chooses the label sets of the slice, nil for all.
func (in *Into) keep() func(id uint64) bool {
	if in.whole() {
		return nil
	}
	return in.Slice.Contains
}
