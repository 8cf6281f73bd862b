package query

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/live"
	"github.com/promlake/promlake/internal/query/index"
)

// Count says what a deletion of [mint, maxt] (ms, inclusive) of the series that match one of sets would take away: the series with a sample
// there, the stored samples (one that several objects have is counted as often), and the samples' share of their objects' bytes, as
// if all samples of an object were equally large. Samples that are deleted already do not count. The tenant is that of ctx.
func (s *Stage) Count(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64) (series, samples, bytes int64, err error) {
	mint, maxt = max(mint, key.MinTime), min(maxt, key.MaxTime)
	if mint > maxt || len(sets) == 0 {
		return 0, 0, 0, nil
	}
	err = s.metrics.Measure("count", func() error {
		_, err := s.snapshots.Range(mint, maxt).Read(ctx, func(snap catalog.Snapshot) error {
			m, err := s.tables.Match(ctx, snap, mint, maxt, sets...)
			if err != nil {
				return err
			}
			c := &counter{reading: reading{Match: m, stage: s}, byObject: make([]int64, len(m.Objects)), hit: make([]bool, len(m.Series))}
			if err := c.count(ctx); err != nil {
				return err
			}
			series, samples, bytes = c.totals()
			return nil
		})
		return err
	})
	return series, samples, bytes, err
}

// counter counts samples and keeps none.
type counter struct {
	reading
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

func (c *counter) count(ctx context.Context) error {
	if err := c.segments(ctx); err != nil {
		return err
	}
	c.whole()
	for _, k := range []struct {
		block.Kind
		places func(t *index.Table, row int) (first, n int64)
	}{{block.FloatFiles, (*index.Table).Floats}, {block.HistFiles, (*index.Table).Hists}} {
		if err := c.blocks(ctx, k.Kind, k.places); err != nil {
			return err
		}
	}
	return nil
}

// segments counts the samples that segments have.
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
				c.add(x.Series, i, c.alive(floats.t[first:first+n], gone))
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

// whole counts the samples of series in blocks that are in the range as a whole, where nothing is deleted: their times need not be read.
func (c *counter) whole() {
	for i := range c.Objects {
		if c.Objects[i].Footer.Meta == nil {
			continue
		}
		t, rest := c.Tables[i], c.Rows[i][:0]
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
}

// blocks counts the samples of a kind that are left, by their times.
func (c *counter) blocks(ctx context.Context, k block.Kind, places func(t *index.Table, row int) (first, n int64)) error {
	p := c.plan(ctx, k.Times(), c.MinT, places)
	counts := make([][]int64, len(p.groups)) // by row group and member
	err := c.run(ctx, p, func(i int, g *groupRead) error {
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

func (c *counter) totals() (series, samples, bytes int64) {
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
	return series, samples, bytes
}
