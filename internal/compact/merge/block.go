package merge

import (
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/live"
)

// Block reads the series of a block that are in in's slice; Merge reads its samples. The tombstones
// above through apply to it. Errors: block.ErrFormat, and those of the block's Source.
func Block(name string, r *block.Reader, in *Into, through ulid.ULID) (*Source, []segment.Metadata, error) {
	s := &Source{name: name, sorted: true, hasST: r.Meta().HasST, through: through, content: &blockContent{r: r}}
	rows, err := r.Series(in.Table, in.keep())
	if err != nil {
		return nil, nil, fmt.Errorf("read series of %s: %w", name, err)
	}
	s.reserve(len(rows))
	var from counts
	for i := range rows {
		b := &rows[i]
		if b.Ref != series.None {
			if err := s.add(b.Ref, counts{b.Floats, b.Hists, b.Exemplars}, from); err != nil {
				return nil, nil, fmt.Errorf("read series of %s: %w", name, err)
			}
		}
		from.floats += b.Floats
		from.hists += b.Hists
		from.exemplars += b.Exemplars
	}
	metadata, err := r.Metadata()
	if err != nil {
		return nil, nil, fmt.Errorf("read metadata of %s: %w", name, err)
	}
	return s, metadata, nil
}

// blockContent reads a block from its beginning to its end. The cursors are made when they are
// first needed.
type blockContent struct {
	r *block.Reader

	floatCursor         *block.FloatCursor
	histCursor          *block.HistCursor
	exemplarCursor      *block.ExemplarCursor
	float, hist, exempl int64 // rows behind the cursors
}

func (c *blockContent) floats(r row, dst *live.Run) error {
	if c.floatCursor == nil {
		c.floatCursor = c.r.Floats()
	}
	c.floatCursor.Skip(r.floatAt - c.float)
	c.float = r.floatAt + int64(r.floats)
	return c.floatCursor.Next(int64(r.floats), (*block.FloatRun)(dst))
}

func (c *blockContent) hists(r *rest, dst []segment.Hist) ([]segment.Hist, error) {
	if c.histCursor == nil {
		c.histCursor = c.r.Hists()
	}
	c.histCursor.Skip(r.histAt - c.hist)
	c.hist = r.histAt + int64(r.hists)
	return c.histCursor.Next(int64(r.hists), dst)
}

func (c *blockContent) exemplars(r *rest, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error) {
	if c.exemplarCursor == nil {
		c.exemplarCursor = c.r.Exemplars()
	}
	c.exemplarCursor.Skip(r.exemplAt - c.exempl)
	c.exempl = r.exemplAt + int64(r.exemplars)
	return c.exemplarCursor.Next(int64(r.exemplars), dst)
}

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
