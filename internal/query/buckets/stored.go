package buckets

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
)

// group is a row group of an object's rollup, and the members that have rows in it.
type group struct {
	object, number int
	members        []member
}

// decoded is a row group in memory.
type decoded struct {
	object, number int
	read           bool
	rows           []rollup.Row
}

// file returns the rollup of an object.
func (s *Scan) file(object int) *block.File {
	return s.res.Objects[object].Footer.Meta.File(s.step.Name)
}

// locate finds the row groups in which members have rows.
func (s *Scan) locate() error {
	s.places = make([]*samples.Places, len(s.members))
	err := s.reader.Files.Each(s.ctx, len(s.members), func(ctx context.Context, o int) (err error) {
		if len(s.members[o]) > 0 {
			s.places[o], err = s.reader.Samples.Places(ctx, &s.res.Objects[o], s.res.Tables[o], s.file(o), s.step)
		}
		return err
	})
	if err != nil {
		return err
	}
	for o, members := range s.members {
		p := s.places[o]
		for _, m := range members {
			if from, end := p.Of(m.row); from == end {
				return s.broken(o, fmt.Errorf("%w: series %s has no rows", rollup.ErrFormat, s.res.Series[m.series].Labels))
			}
		}
		if len(members) == 0 {
			continue
		}
		for g := range p.Groups() {
			lo := sort.Search(len(members), func(i int) bool { _, end := p.Of(members[i].row); return end > p.First(g) })
			hi := sort.Search(len(members), func(i int) bool { from, _ := p.Of(members[i].row); return from >= p.First(g+1) })
			if lo < hi {
				s.groups = append(s.groups, group{o, g, members[lo:hi]})
			}
		}
	}
	return nil
}

func (s *Scan) broken(object int, err error) error {
	o := &s.res.Objects[object]
	return o.Broken(fmt.Errorf("read %s: %w", o.Block.File(s.file(object).Name), err))
}

// decode reads a row group, unless that is what d holds.
func (s *Scan) decode(d *decoded, object, number int) error {
	if d.read && d.object == object && d.number == number {
		return nil
	}
	file, o := s.file(object), &s.res.Objects[object]
	in := s.reader.Files.Open(s.ctx, o.Block.File(file.Name), file.Bytes)
	spans := s.places[object].FieldSpans(number, s.fields)
	t := request.Totals{}
	t.RowGroups.Considered, t.RowGroups.Read = 1, 1
	for _, span := range spans {
		t.Bytes.Considered, t.Bytes.Read = t.Bytes.Considered+span[1], t.Bytes.Read+span[1]
	}
	s.reader.Metrics.Count(s.ctx, t)
	err := in.Prefetch(spans)
	if err == nil {
		d.rows, err = s.places[object].ReadRows(in, number, s.fields, d.rows)
	}
	if err = errors.Join(err, in.Close()); err != nil {
		return s.broken(object, err)
	}
	d.object, d.number, d.read = object, number, true
	return nil
}

// stored reads the rows of a row group that count.
func (c *Cursor) stored(g *group) error {
	s := c.scan
	if err := s.decode(&c.group, g.object, g.number); err != nil {
		return err
	}
	p := s.places[g.object]
	first, end := p.First(g.number), p.First(g.number+1)
	for _, m := range g.members {
		from, upto := p.Of(m.row)
		rows := c.group.rows[max(from, first)-first : min(upto, end)-first]
		for i := range rows {
			if r := &rows[i]; r.Bucket != m.joined && s.counts(m.series, r.Bucket) {
				c.add(r)
			}
		}
		if upto <= end && m.next.object >= 0 {
			if err := c.join(&m, &rows[len(rows)-1]); err != nil {
				return err
			}
		}
		c.end(m.series)
	}
	return nil
}

// join joins the first row of the next object of a series to its last row here, if both are of one
// bucket that counts.
func (c *Cursor) join(m *member, last *rollup.Row) error {
	s := c.scan
	p := s.places[m.next.object]
	row, _ := p.Of(m.next.row)
	g := p.Group(row)
	if err := s.decode(&c.later, m.next.object, g); err != nil {
		return err
	}
	later := &c.later.rows[row-p.First(g)]
	switch {
	case later.Bucket != m.next.bucket || !s.counts(m.series, later.Bucket):
		return nil
	case last.Bucket != later.Bucket: // it has an exemplar there, and no sample
		c.add(later)
		return nil
	case later.Count > 1:
		return s.broken(m.next.object, fmt.Errorf("%w: series %s has several samples at the end of a bucket", rollup.ErrFormat, s.res.Series[m.series].Labels))
	}
	if n := len(c.rows); n > 0 && last.Count > 0 {
		c.rows[n-1].Join(later)
		return nil
	}
	c.add(later)
	return nil
}
