package query

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/tenant"
)

// Count says what a deletion of [mint, maxt] (ms, inclusive) of the series that match one of sets would take away: the series with a sample
// there, the stored samples (one that several objects have is counted as often), and the samples' share of their objects' bytes, as
// if all samples of an object were equally large. Samples that are deleted already do not count. The tenant is that of ctx.
func (s *Stage) Count(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64) (series, samples, bytes int64, err error) {
	mint, maxt = max(mint, key.MinTime), min(maxt, key.MaxTime)
	if mint > maxt || len(sets) == 0 {
		return 0, 0, 0, nil
	}
	take := func(ctx context.Context, _ bool) (catalog.Snapshot, error) {
		return s.snapshot(ctx, tenant.From(ctx), mint, maxt)
	}
	err = s.measure("count", func() error {
		return s.replanning(ctx, take, func(snap catalog.Snapshot) error {
			series, samples, bytes = 0, 0, 0
			sel, err := s.locate(ctx, snap, mint, maxt, sets...)
			if err != nil {
				return err
			}
			return s.with(ctx, sel, func(src *source) error {
				c, err := s.countIn(ctx, src, snap.Tombstones, sets, mint, maxt)
				if err == nil && c != nil {
					series, samples, bytes = c.totals()
				}
				return err
			})
		})
	})
	return series, samples, bytes, err
}

// countIn counts the samples in the objects of a source. The result is nil if no series can match.
func (s *Stage) countIn(ctx context.Context, src *source, tombs []catalog.Tombstone, sets [][]*labels.Matcher, mint, maxt int64) (*counter, error) {
	pred, err := s.union(ctx, src, sets)
	if err != nil || pred.never {
		return nil, err
	}
	pred.and(src.overlapping(mint, maxt))
	c := &counter{
		collector: newCollector(newScan(src, pred, times), &s.settings, s.seed, mint, maxt),
		byObject:  make([]int64, len(src.objs)), hit: map[*memSeries]struct{}{},
	}
	if c.deletions, err = newDeletions(tombs, src.objs); err != nil {
		return nil, err
	}
	if err := s.db.Each(ctx, c.scan.String(), c.scan.types, c.chunk); err != nil {
		return nil, err
	}
	c.countWhole()
	if err := s.eachPart(ctx, c.parts(floatFiles, mint, func(p *places) []run { return p.floats }), c.pieces); err != nil {
		return nil, err
	}
	return c, s.eachPart(ctx, c.parts(histFiles, mint, func(p *places) []run { return p.hists }), c.pieces)
}

// counter counts samples and keeps none. It finds series and time ranges as a collector does.
type counter struct {
	*collector
	byObject []int64 // samples
	hit      map[*memSeries]struct{}
}

// add counts n samples of a series in an object.
func (c *counter) add(s *memSeries, object int, n int64) {
	if n > 0 {
		c.byObject[object] += n
		c.hit[s] = struct{}{}
	}
}

func (c *counter) chunk(n int, cols []duck.Vector) error {
	c.identity.chunk(n, cols)
	rows := make([]*memSeries, n)
	if err := c.lookup(rows, cols, nil); err != nil {
		return err
	}
	c.place(rows, cols)
	objects := cols[colFileIndex].Uint64s()
	for _, column := range []int{c.scan.ts, c.scan.histTS} {
		spans, _ := c.spans(cols, column)
		if spans == nil {
			continue
		}
		_, elems := cols[column].List()
		micros := elems.Int64s()
		for i, sp := range spans {
			gone := c.deletions.gone(int(objects[i]), rows[i])
			c.add(rows[i], int(objects[i]), alive(micros[sp.from:sp.from+sp.n], gone))
		}
	}
	return nil
}

// alive returns how many of the times (µs) are not deleted.
func alive(micros []int64, gone tombstones.Intervals) int64 {
	n := int64(len(micros))
	if len(gone) == 0 {
		return n
	}
	for _, t := range micros {
		if isDeleted(t/microsPerMilli, gone) {
			n--
		}
	}
	return n
}

// countWhole counts the samples of series in blocks that are in the range as a whole, where nothing is deleted: their times need not be read.
func (c *counter) countWhole() {
	for i := range c.places {
		ft, p := c.scan.src.objs[i].footer, &c.places[i]
		if ft.MinT < c.mint || ft.MaxT > c.maxt {
			continue
		}
		for _, runs := range []*[]run{&p.floats, &p.hists} {
			rest := (*runs)[:0]
			for _, r := range *runs {
				if len(c.deletions.gone(i, r.series)) > 0 {
					rest = append(rest, r)
					continue
				}
				c.add(r.series, i, r.n)
			}
			*runs = rest
		}
	}
}

// pieces counts the samples of a chunk of blocks' rows.
func (c *counter) pieces(pieces []piece, cols []duck.Vector) error {
	micros := cols[colTime].Int64s()
	for _, p := range pieces {
		c.add(p.series, p.object, alive(micros[p.from:p.to], c.deletions.gone(p.object, p.series)))
	}
	return nil
}

func (c *counter) totals() (series, samples, bytes int64) {
	for i, n := range c.byObject {
		o := &c.scan.src.objs[i]
		samples += n
		if o.footer.Samples > 0 {
			bytes += int64(float64(o.bytes()) * float64(n) / float64(o.footer.Samples))
		}
	}
	return int64(len(c.hit)), samples, bytes
}

// bytes is the size of all files of an object.
func (l *located) bytes() int64 {
	if l.footer.block != nil {
		return l.footer.block.Bytes()
	}
	return l.size
}
