package merge

import (
	"fmt"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/internal/store/recent"
)

// Segment decodes the series of a segment that are in in's slice. The tombstones above through
// apply to it. Errors: segment.ErrFormat.
func Segment(name string, f *segment.File, in *Into, through ulid.ULID) (*Source, []segment.Metadata, error) {
	b, err := in.decoder().Decode(f)
	if err != nil {
		return nil, nil, fmt.Errorf("decode %s: %w", name, err)
	}
	s := &Source{name: name, hasST: b.ST != nil, through: through}
	if err := s.fromBatch(b, in); err != nil {
		return nil, nil, err
	}
	return s, b.Metadata, nil
}

// fromBatch makes rows of those of the batch that are in the slice.
func (s *Source) fromBatch(b *segment.Batch, in *Into) error {
	c := &batchContent{hist: b.Hists, ex: b.Exemplars}
	if in.whole() {
		c.run = live.Run{TS: b.TS, V: b.V, ST: b.ST}
	}
	if in.whole() && len(b.Hists)+len(b.Exemplars) == 0 && single(b.End) {
		s.refs, s.content = b.Rows, c
		return nil
	}
	s.reserve(len(b.Rows))
	var from counts
	begin := 0
	for i, r := range b.Rows {
		at := from
		n := from.rest(i, b.Hists, b.Exemplars)
		n.floats = int64(b.End[i] - begin)
		if r != series.None {
			at.floats = int64(begin)
			if !in.whole() { // so that the whole batch need not stay in memory
				at.floats = int64(len(c.run.TS))
				all := live.Run{TS: b.TS, V: b.V, ST: b.ST}
				c.run.Append(all.Slice(begin, b.End[i]))
			}
			if err := s.add(r, n, at); err != nil {
				return s.fail(err)
			}
		}
		begin = b.End[i]
	}
	s.content = c
	return nil
}

// single reports whether each row has one float sample.
func single(ends []int) bool {
	for i, end := range ends {
		if end != i+1 {
			return false
		}
	}
	return true
}

// batchContent is the content of a decoded segment.
type batchContent struct {
	run  live.Run
	hist []segment.RowHists
	ex   []segment.RowExemplars
}

func (c *batchContent) floats(r row, dst *live.Run) error {
	dst.Append(c.run.Slice(int(r.floatAt), int(r.floatAt)+int(r.floats)))
	return nil
}

func (c *batchContent) hists(r *rest, dst []segment.Hist) ([]segment.Hist, error) {
	return append(dst, c.hist[r.histAt].Samples...), nil
}

func (c *batchContent) exemplars(r *rest, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error) {
	return append(dst, c.ex[r.exemplAt].Exemplars...), nil
}

// SegmentBytes estimates the memory that a decoded segment takes in addition to its labels.
func SegmentBytes(f *segment.File) int64 {
	const perSample, perST, perRow, encoded = 16, 8, 40, 8
	n := f.Samples()*perSample + f.Rows()*perRow
	if f.HasST() {
		n += f.Samples() * perST
	}
	if f.HasRest() { // how large they are, only their bytes tell
		n += f.Bytes() * encoded
	}
	return n
}

// Recent is Segment for a segment whose content is in memory and whose label sets are in in.Known.
// The source shares the content, and nobody changes it.
func Recent(name string, c *recent.Segment, in *Into, through ulid.ULID) (*Source, error) {
	s := &Source{name: name, hasST: c.ST != nil, through: through, content: recentContent{c}}
	if in.whole() && asScraped(c) {
		s.refs = c.Rows
		return s, nil
	}
	s.reserve(len(c.Rows))
	keep, view := in.keep(), in.View() // of the same table as c
	var from counts
	for i, r := range c.Rows {
		at := from
		n := from.rest(i, c.Hists, c.Exemplars)
		n.floats = int64(c.End(i)) - from.floats
		from.floats += n.floats
		if keep != nil && !keep(view.ID(r)) {
			continue
		}
		if err := s.add(r, n, at); err != nil {
			return nil, s.fail(err)
		}
	}
	return s, nil
}

// RecentBytes estimates the memory that a source of Recent takes in addition to its content.
func RecentBytes(c *recent.Segment) int64 {
	if asScraped(c) {
		return 0
	}
	const perRow, perRest = 20, 24
	if len(c.Hists)+len(c.Exemplars) > 0 {
		return (perRow + perRest) * int64(len(c.Rows))
	}
	return perRow * int64(len(c.Rows))
}

// asScraped reports whether each row is one float sample, as after a scrape.
func asScraped(c *recent.Segment) bool { return c.Single() && len(c.Hists)+len(c.Exemplars) == 0 }

// recentContent is the content of a segment in memory.
type recentContent struct{ *recent.Segment }

func (c recentContent) floats(r row, dst *live.Run) error {
	from, to := int(r.floatAt), int(r.floatAt)+int(r.floats)
	dst.TS, dst.V = c.AppendTimes(dst.TS, from, to), append(dst.V, c.V[from:to]...)
	if c.ST != nil {
		dst.ST = append(dst.ST, c.ST[from:to]...)
	}
	return nil
}

func (c recentContent) hists(r *rest, dst []segment.Hist) ([]segment.Hist, error) {
	return append(dst, c.Hists[r.histAt].Samples...), nil
}

func (c recentContent) exemplars(r *rest, dst []exemplar.Exemplar) ([]exemplar.Exemplar, error) {
	return append(dst, c.Exemplars[r.exemplAt].Exemplars...), nil
}

// Waiting makes one source of segments that follow one another in rank, whose samples only a head
// has, and whose label sets are in the table that Into knows. through is as in Gather. A merge may
// end with recent.ErrGone.
func Waiting(name string, p *recent.Part, through ulid.ULID) *Source {
	return &Source{name: name, refs: p.Refs, n: p.N, through: through, content: waitingContent{Part: p}}
}

// WaitingBytes estimates the memory that a source of Waiting takes.
func WaitingBytes(p *recent.Part) int64 {
	const perSeries = 12
	return perSeries * int64(len(p.Refs))
}

// waitingContent is the content of segments in a head. A row is at the index of its series.
type waitingContent struct {
	floatsOnly
	*recent.Part
}

func (c waitingContent) floats(r row, dst *live.Run) (err error) {
	dst.TS, dst.V, err = c.Append(int(r.floatAt), dst.TS, dst.V)
	return err
}
