package query

import (
	"context"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/read"
)

// readBlocks reads the samples that c found places of.
func (s *Stage) readBlocks(ctx context.Context, c *collector) error {
	floats := c.parts(floatFiles, c.mint, func(p *places) []run { return p.floats })
	if err := s.eachPart(ctx, floats, c.blockFloats); err != nil {
		return err
	}
	// The histogram before the range tells whether a counter was reset in between. It is looked for as far back as samples count.
	from := c.mint - s.settings.LookbackDelta.Milliseconds()
	hists := c.parts(histFiles, from, func(p *places) []run { return p.hists })
	if len(hists.scans) > 0 {
		c.unread = max(c.unread, from-1)
	}
	return s.eachPart(ctx, hists, c.blockHistograms)
}

// partsRead is a planned read of one kind of files, in as many statements as it takes.
type partsRead struct {
	scans []*blockScan
	took  read.Totals
}

// maxScanParts bounds the parts of a statement: each may be a SELECT of its own, and DuckDB plans those by recursion.
const maxScanParts = 256

// parts plans the read of what runsOf says of every block, within [mint, c.maxt].
func (c *collector) parts(k kind, mint int64, runsOf func(*places) []run) partsRead {
	var parts []part
	var took read.Totals
	for i := range c.places {
		ps, t := partsOf(i, &c.scan.src.objs[i], k, sorted(runsOf(&c.places[i])), mint, c.maxt)
		parts = append(parts, ps...)
		took.Add(t)
	}
	out := partsRead{took: took}
	for ps := range slices.Chunk(parts, maxScanParts) {
		out.scans = append(out.scans, newBlockScan(k, ps, mint, c.maxt, c.scan.want == samples))
	}
	return out
}

// eachPart fetches the files of the parts, runs the statements and calls fn for their chunks.
func (s *Stage) eachPart(ctx context.Context, r partsRead, fn func(pieces []piece, cols []duck.Vector) error) error {
	s.count(ctx, r.took)
	for _, scan := range r.scans {
		keys := make([]string, len(scan.parts))
		for i := range scan.parts {
			keys[i] = scan.parts[i].key
		}
		at := finder{parts: scan.parts, last: make([]int, len(scan.parts))}
		err := s.files.with(ctx, keys, func(paths []string) error {
			scan.paths = paths
			return s.db.Each(ctx, scan.String(), scan.types(), func(n int, cols []duck.Vector) error {
				return fn(at.pieces(n, cols), cols)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// piece is the rows [from, to) of a chunk that are of one series in one block, ascending.
type piece struct {
	series   *memSeries
	object   int
	from, to int
}

// finder finds out which series rows are of.
type finder struct {
	parts []part
	last  []int // by part: the run that the last row was of, where the next one is likely to be
	buf   []piece
}

// pieces returns the wanted rows of a chunk. The result is valid until the next call.
func (f *finder) pieces(n int, cols []duck.Vector) []piece {
	parts, rows := cols[colPart].Uint64s(), cols[colRow].Int64s()
	f.buf = f.buf[:0]
	for i := 0; i < n; {
		k := parts[i]
		p := &f.parts[k]
		r := f.run(int(k), p.first+rows[i])
		wanted := p.first+rows[i] >= r.start
		end := r.end() - p.first // rows of the file before this one are like row i
		if !wanted {
			end = r.start - p.first
		}
		j := i + 1
		for j < n && parts[j] == k && rows[j] > rows[j-1] && rows[j] < end {
			j++
		}
		if wanted {
			f.buf = append(f.buf, piece{r.series, p.object, i, j})
		}
		i = j
	}
	return f.buf
}

// run returns the first run of a part that ends after a row. There is one: a part ends with its last run.
func (f *finder) run(k int, row int64) run {
	runs := f.parts[k].runs
	for i := f.last[k]; i < min(f.last[k]+2, len(runs)); i++ {
		if row < runs[i].end() && (i == 0 || row >= runs[i-1].end()) {
			f.last[k] = i
			return runs[i]
		}
	}
	f.last[k] = sort.Search(len(runs)-1, func(i int) bool { return row < runs[i].end() })
	return runs[f.last[k]]
}

// blockFloats takes the float samples of a chunk.
func (c *collector) blockFloats(pieces []piece, cols []duck.Vector) error {
	total := 0
	for _, p := range pieces {
		total += p.to - p.from
	}
	if c.size += total; c.size > c.settings.MaxSamples {
		return c.settings.tooManySamples()
	}
	times := cols[colTime].Int64s()
	ints, div := cols[colPayload].Int64s(), cols[colPayload+1].Float64s()
	b := &batch{t: make([]int64, 0, total), v: make([]float64, 0, total)}
	var starts duck.Vector
	if len(cols) > colPayload+2 {
		starts = cols[colPayload+2]
		b.st = make([]int64, total)
	}
	for _, p := range pieces {
		at := len(b.t)
		for _, t := range times[p.from:p.to] {
			b.t = append(b.t, t/microsPerMilli)
		}
		b.v = block.DecodeValues(b.v, ints[p.from:p.to], div[p.from:p.to])
		if b.st != nil {
			startsOf(b.st[at:len(b.t)], starts, p.from)
		}
		p.series.take(fragment{b, uint32(at), uint32(p.to - p.from), uint32(p.object)}, &c.deletions)
	}
	return nil
}

// startsOf reads start timestamps (ms) from row from on. NULL stands for a file that has none.
func startsOf(dst []int64, col duck.Vector, from int) {
	micros := col.Int64s()
	for i := range dst {
		if col.Valid(from + i) {
			dst[i] = micros[from+i] / microsPerMilli
		}
	}
}

// blockHistograms takes the histogram samples of a chunk.
func (c *collector) blockHistograms(pieces []piece, cols []duck.Vector) error {
	blobs := cols[colPayload].Strings()
	for _, p := range pieces {
		gone := c.deletions.gone(p.object, p.series)
		for i := p.from; i < p.to; i++ {
			if err := c.histogram(p.series, blobs[i].Bytes(), uint32(p.object), gone); err != nil {
				return err
			}
		}
	}
	return nil
}
