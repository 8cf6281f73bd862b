package samples

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// Collector reads the samples of a match: of blocks page by page, each row group once, with several
// row groups at a time; of segments from their decoded lists.
type Collector struct {
	*lookup.Match
	reader  *Reader
	got     []*collected // parallel to the match's series
	size    atomic.Int64 // samples held; a histogram counts as its bytes / 16
	inBatch bool         // of a larger read: its samples are soon released
	counted bool         // the larger read counts what is read
	keep    bool         // later reads may use what is decoded of blocks
	work    *memory.Work // of the request that holds the samples; nil: nobody counts them
	memory  *Memory      // of a batch: for the samples of blocks; nil: each read allocates
}

// Collect returns a collector of the samples of a match.
func (s *Reader) Collect(m *lookup.Match) *Collector {
	return &Collector{Match: m, reader: s, got: readable(m.Series), keep: true}
}

// CollectBatch returns a collector for a batch of a larger read, which counts what is read; only
// means that the read has no other batch. The samples lie in memory until that is given to the next
// batch.
func (s *Reader) CollectBatch(m *lookup.Match, to *Memory, only bool) *Collector {
	r := s.CollectShare(m, to, only)
	r.counted = true
	return r
}

// CollectShare is CollectBatch for a larger read that may end early, so that each batch counts what
// it reads. keep means that the next read may use what is decoded: see Keeps.
func (s *Reader) CollectShare(m *lookup.Match, to *Memory, keep bool) *Collector {
	to.reset()
	r := s.Collect(m)
	r.inBatch, r.memory, r.keep = true, to, keep
	return r
}

// Into lets a collector read into memory, as the only batch of its read. It counts what it reads.
func (r *Collector) Into(to *Memory) {
	to.reset()
	r.inBatch, r.memory = true, to
}

// ReadFloats collects the float samples of a batch. Those of native histograms are left out.
func (r *Collector) ReadFloats(ctx context.Context) error {
	r.reserve()
	if err := r.blockFloats(ctx); err != nil { // mostly older, so that fragments come in order
		return err
	}
	if err := r.segments(ctx); err != nil || r.HeadFrom == 0 {
		return err
	}
	// The series have their samples from HeadFrom on. Those that objects have of that time are left
	// out: they are the same.
	n := 0
	for _, s := range r.got {
		kept := s.floats[:0]
		for _, f := range s.floats {
			if f.last() >= r.HeadFrom {
				if f.first() >= r.HeadFrom {
					continue
				}
				f.n = uint32(reaching(f.times(), r.HeadFrom))
			}
			kept = append(kept, f)
		}
		s.floats = kept
		if s.Head == nil {
			continue
		}
		if lo, hi := between(s.Head.T, r.MinT, r.MaxT); lo < hi {
			b := &batch{t: s.Head.T, v: s.Head.V, clean: !s.Head.Stale}
			s.floats = append(s.floats, fragment{b, uint32(lo), uint32(lo), uint32(hi - lo), uint32(len(r.Objects))})
			n += hi - lo
		}
	}
	return r.hold(int64(n))
}

// Held is the number of samples that were read.
func (r *Collector) Held() int64 { return r.size.Load() }

// Joined returns the float samples of a series of a batch, none if it has none, and what the kernel
// may assume of them if its last series was that of the last call. They are valid until the next
// call. Of a match with replicas, it is a series as shown.
func (r *Collector) Joined(series int) (t []int64, v []float64, facts promsql.Facts) {
	if r.Replicas != nil {
		return r.chosenFloats(&r.Replicas.Groups[series])
	}
	s := r.got[series]
	if len(s.floats) == 0 {
		return nil, nil, 0
	}
	p, facts := r.memory.join(s)
	return p.t, p.v, facts
}

// FloatParts returns what is read of the blocks' float samples.
func (r *Collector) FloatParts(ctx context.Context) ([]source.Parts, request.Totals) {
	p := r.plan(ctx, block.FloatFiles, r.MinT, (*index.Table).Floats, nil)
	return p.files, p.took
}

// HistParts returns what is read of the blocks' native histograms.
func (r *Collector) HistParts(ctx context.Context) ([]source.Parts, request.Totals) {
	p := r.plan(ctx, block.HistFiles, r.histsFrom(), (*index.Table).Hists, nil)
	return p.files, p.took
}

// ExemplarParts returns what is read of the blocks' exemplars.
func (r *Collector) ExemplarParts(ctx context.Context) ([]source.Parts, request.Totals) {
	p := r.plan(ctx, block.ExemplarFiles, r.MinT, (*index.Table).Exemplars, nil)
	return p.files, p.took
}

// hold counts samples before they are decoded. Those of a batch are soon released.
func (r *Collector) hold(n int64) error {
	if held := r.size.Add(n); held > int64(r.reader.settings.MaxSamples) && !r.inBatch {
		return request.TooManySamples(r.reader.settings.MaxSamples, held)
	}
	if r.inBatch {
		return nil
	}
	return r.work.Charge(n * request.BytesPerPoint)
}

// rowGroup is a row group of a block's file and the rows that are read of it.
type rowGroup struct {
	object  int // position in the objects
	in      source.Reader
	group   *block.RowGroup
	members []lookup.Row // with rows in the group, in order
	rows    []block.Rows // theirs
	key     string       // of decoded samples in the cache; empty: they are not kept
	all     bool         // the key is that of all rows of the row group
}

// readPlan is a planned read of a kind of blocks' files.
type readPlan struct {
	groups []rowGroup
	files  []source.Parts
	rows   int64
	took   request.Totals

	spans [][2]int64 // memory for those of a row group
}

// plan plans the read of a kind of files. places returns the rows in them that belong to a row of a
// series table. A row group is left out if it has none of these rows, if it lies outside of [mint,
// r.MaxT] (ms), or if held, which may be nil, returns true: then its samples are in memory.
func (r *Collector) plan(ctx context.Context, k block.Kind, mint int64, places func(t *index.Table, row int) (first, n int64), held func(*rowGroup) bool) *readPlan {
	out := &readPlan{}
	for i := range r.Objects {
		m := r.Objects[i].Footer.Meta
		if m == nil || len(r.Rows[i]) == 0 {
			continue
		}
		at := func(x lookup.Row) (first, n int64) { return places(r.Tables[i], int(x.N)) }
		members := slices.DeleteFunc(slices.Clone(r.Rows[i]), func(x lookup.Row) bool { _, n := at(x); return n == 0 })
		for j := range m.Files {
			if f := &m.Files[j]; k.Has(f) && len(members) > 0 {
				open := func() source.Parts { return r.reader.files.Parts(ctx, r.Objects[i].Block.File(f.Name), f.Bytes) }
				out.file(open, i, k, f, mint, r.MaxT, members, at, held)
			}
		}
	}
	return out
}

// file plans the read of one file, which it opens if anything of it is read.
func (p *readPlan) file(open func() source.Parts, object int, k block.Kind, f *block.File, mint, maxt int64, members []lookup.Row, at func(lookup.Row) (first, n int64), held func(*rowGroup) bool) {
	var file source.Parts
	begin, _ := at(members[0])
	last, n := at(members[len(members)-1])
	for i := range f.RowGroups {
		g := &f.RowGroups[i]
		p.took.RowGroups.Considered++
		p.took.Bytes.Considered += k.Bytes(g)
		end := g.FirstRow + g.Rows
		if end <= begin || g.FirstRow >= last+n { // as most are
			continue
		}
		lo := sort.Search(len(members), func(i int) bool { first, n := at(members[i]); return first+n > g.FirstRow })
		hi := lo + sort.Search(len(members)-lo, func(i int) bool { first, _ := at(members[lo+i]); return first >= end })
		if lo == hi || g.MinT > maxt || g.MaxT < mint {
			continue
		}
		rows := make([]block.Rows, hi-lo)
		for j, x := range members[lo:hi] {
			first, n := at(x)
			from, to := max(first, g.FirstRow), min(first+n, end)
			rows[j] = block.Rows{From: from, N: to - from}
		}
		x := rowGroup{object: object, group: g, members: members[lo:hi], rows: rows}
		skip := held != nil && held(&x)
		wanted := rows
		if x.all {
			wanted = x.allRows()
		}
		p.spans = k.AppendSpans(p.spans[:0], g, wanted)
		p.took.RowGroups.Read++
		for _, s := range p.spans {
			p.took.Bytes.Read += s[1]
		}
		if skip {
			continue
		}
		for _, r := range rows {
			p.rows += r.N
		}
		if file.In == nil {
			file = open()
		}
		x.in = file.In
		p.groups = append(p.groups, x)
		file.Add(p.spans)
	}
	if len(file.Spans) > 0 {
		p.files = append(p.files, file)
	}
}

// parallelRows is the number of rows from which a read uses more than one processor.
const parallelRows = 32 << 10

// run calls read for every row group, several at a time if there are many rows.
func (r *Collector) run(ctx context.Context, p *readPlan, read func(i int, g *rowGroup) error) (err error) {
	defer func() {
		for _, f := range p.files {
			err = errors.Join(err, f.In.Close())
		}
	}()
	if !r.counted {
		r.reader.metrics.Count(ctx, p.took)
	}
	if err := r.reader.files.Each(ctx, len(p.files), func(_ context.Context, i int) error { return p.files[i].In.Prefetch(p.files[i].Spans) }); err != nil {
		return err
	}
	workers := min(r.reader.settings.Threads, len(p.groups))
	if p.rows < parallelRows {
		workers = min(workers, 1)
	}
	var next atomic.Int64
	work := func(ctx context.Context) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(p.groups) {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			x := &p.groups[i]
			if err := read(i, x); err != nil {
				o := &r.Objects[x.object]
				return o.Broken(fmt.Errorf("read rows from %d on of %s: %w", x.group.FirstRow, o.Block.Prefix(), err))
			}
		}
	}
	if workers <= 1 {
		return work(ctx)
	}
	g, gctx := errgroup.WithContext(ctx)
	for range workers {
		g.Go(telemetry.Guard(func() error { return work(gctx) }))
	}
	return g.Wait()
}
