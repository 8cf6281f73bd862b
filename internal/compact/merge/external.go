package merge

import (
	"errors"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/live"
)

// Rows are series that are in no object of this store.
type Rows interface {
	Len() int
	// Ref returns the reference of the i-th series in the table of the merge, which no other has.
	Ref(i int) series.Ref
	// Read appends the samples of the i-th series, ascending and each time once. It leaves ST empty
	// if it is empty and no sample has a start timestamp.
	Read(i int, floats *live.Run, hists []segment.Hist) ([]segment.Hist, error)
}

// ErrStartTimes reports a source with start timestamps that was said to have none.
var ErrStartTimes = errors.New("samples have start timestamps")

// External returns rows as a source of a merge of such sources with equal hasST: whether floats may
// have start timestamps. If one has and hasST is false, Merge fails with ErrStartTimes.
func External(name string, rows Rows, hasST bool) *Source {
	n := rows.Len()
	s := &Source{name: name, hasST: hasST, refs: make([]series.Ref, n), rest: make([]rest, n), content: &external{rows: rows, hasST: hasST}}
	for i := range s.refs {
		// How many samples there are is known only after Read.
		s.refs[i], s.rest[i] = rows.Ref(i), rest{hists: 1}
	}
	return s
}

// external is the content of Rows. floats reads a row, of which hists is the rest.
type external struct {
	floatsOnly
	rows  Rows
	hasST bool
	rest  []segment.Hist
}

func (e *external) floats(r row, dst *live.Run) (err error) {
	e.rest, err = e.rows.Read(int(r.floatAt), dst, e.rest[:0])
	if err == nil && !e.hasST && len(dst.ST) > 0 {
		return ErrStartTimes
	}
	return err
}

func (e *external) hists(_ *rest, dst []segment.Hist) ([]segment.Hist, error) {
	return append(dst, e.rest...), nil
}
