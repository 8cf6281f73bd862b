package samples

import (
	"context"

	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/store/live"
)

// Count counts the samples of a match in its range: the series that have any, the stored samples
// (one that several objects have is counted as often), and the samples' share of their objects'
// bytes, as if all samples of an object were equally large. Deleted samples do not count.
func (s *Reader) Count(ctx context.Context, m *lookup.Match) (series, samples, bytes int64, err error) {
	c := &counter{Collector: Collector{Match: m, reader: s}, byObject: make([]int64, len(m.Objects)), hit: make([]bool, len(m.Series))}
	if err := c.segments(ctx); err != nil {
		return 0, 0, 0, err
	}
	// Blocks that lie completely in the range, and whose samples are not deleted, are counted
	// by the series tables alone. The other rows are left to blocks.
	for i := range c.Objects {
		if c.Objects[i].Footer.Meta == nil {
			continue
		}
		t := c.Tables[i]
		var rest []lookup.Row // others have the rows too
		for _, x := range c.Rows[i] {
			from, upto := t.Times(int(x.N))
			if from < c.MinT || upto > c.MaxT || len(c.Deletions.Gone(nil, i, c.Series[x.Series].Tombstones)) > 0 {
				rest = append(rest, x)
				continue
			}
			_, floats := t.Floats(int(x.N))
			_, hists := t.Hists(int(x.N))
			c.add(x.Series, i, floats+hists)
		}
		c.Rows[i] = rest
	}
	if err := c.blocks(ctx, block.FloatFiles, (*index.Table).Floats); err != nil {
		return 0, 0, 0, err
	}
	if err := c.blocks(ctx, block.HistFiles, (*index.Table).Hists); err != nil {
		return 0, 0, 0, err
	}
	for i, n := range c.byObject {
		o := &c.Objects[i]
		samples += n
		if o.Footer.Samples > 0 {
			bytes += int64(float64(o.Bytes()) * float64(n) / float64(o.Footer.Samples))
		}
	}
	for _, hit := range c.hit {
		if hit {
			series++
		}
	}
	return series, samples, bytes, nil
}

// counter counts samples and keeps none.
type counter struct {
	Collector
	byObject []int64 // samples
	hit      []bool  // by series
}

// add counts n samples of a series in an object.
func (c *counter) add(series int32, object int, n int64) {
	if n > 0 {
		c.byObject[object] += n
		c.hit[series] = true
	}
}

// segments counts the samples in segments.
func (c *counter) segments(ctx context.Context) error {
	for i := range c.Objects {
		t := c.Tables[i]
		if c.Objects[i].Footer.Meta != nil || len(c.Rows[i]) == 0 {
			continue
		}
		floats, hists, err := c.listed(ctx, i)
		if err != nil {
			return err
		}
		for _, x := range c.Rows[i] {
			gone := c.Deletions.Gone(nil, i, c.Series[x.Series].Tombstones)
			if first, n := t.Floats(int(x.N)); n > 0 {
				c.add(x.Series, i, c.alive(floats.times(uint32(first), uint32(first+n)), gone))
			}
			if first, n := t.Hists(int(x.N)); n > 0 {
				c.add(x.Series, i, c.alive(hists.t[first:first+n], gone))
			}
		}
	}
	return nil
}

// alive returns how many of ascending times (ms) are in the range and not deleted.
func (c *counter) alive(ts []int64, gone tombstones.Intervals) int64 {
	lo, hi := between(ts, c.MinT, c.MaxT)
	n := 0
	for from, to := range live.Kept(ts[lo:hi], gone) {
		n += to - from
	}
	return int64(n)
}

// blocks counts the samples of a kind in the rows that are left, by their times.
func (c *counter) blocks(ctx context.Context, k block.Kind, places func(t *index.Table, row int) (first, n int64)) error {
	p := c.plan(ctx, k.Times(), c.MinT, places, nil)
	counts := make([][]int64, len(p.groups)) // by row group and member
	err := c.run(ctx, p, func(i int, g *rowGroup) error {
		fr := floatReaders.Get().(*block.FloatReader)
		defer floatReaders.Put(fr)
		if _, err := fr.Select(g.in, g.group, false, g.rows, c.MinT, c.MaxT); err != nil {
			return err
		}
		counts[i] = make([]int64, len(g.members))
		for j, x := range g.members {
			counts[i][j] = c.alive(fr.Times(j), c.Deletions.Gone(nil, g.object, c.Series[x.Series].Tombstones))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, g := range p.groups {
		for j, x := range g.members {
			c.add(x.Series, g.object, counts[i][j])
		}
	}
	return nil
}
