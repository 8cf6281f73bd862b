package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/compact/merge"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	fetchAhead = 8       // segments that are fetched at once
	maxAhead   = 4 << 20 // bytes of a remote file that are fetched at once
	minAhead   = 256 << 10
	groupRows  = block.DefaultRowGroupRows

	// Memory that is taken, about.
	decodedRowBytes     = 48 // for a row of a row group while it is decoded
	gatheredSampleBytes = 4  // for a sample in a merge.Gather
)

// errSeriesMemory reports that the series tables of a job do not fit.
var errSeriesMemory = errors.New("series tables are larger than the job's memory")

// opened are the sources of a merge, by rank, ready to be read.
type opened struct {
	taken    []plan.Source
	ends     map[catalog.SegmentID]int64 // ms: of the last sample of segments whose objects were read
	merge    []*merge.Source
	into     merge.Into
	metadata merge.Descriptions
	closers  []io.Closer
	samples  int64 // about, of all sources
	bytes    int64 // of the sources' objects, as far as read
	memory   int64 // of the sources, without the table
	hasST    bool
}

// usedTables are tables of jobs that are done, whose memory the next jobs use.
var usedTables = sync.Pool{New: func() any { return series.NewTable(0) }}

// Close ends the use of the sources and of their table.
func (o *opened) Close() error {
	if o.into.Table != nil {
		usedTables.Put(o.into.Table)
		o.into = merge.Into{}
	}
	var errs []error
	for _, c := range o.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// opener opens the sources of one job.
type opener struct {
	s           *Stage
	ctx         context.Context
	tenant      string
	job         *plan.Job
	out         *opened
	ahead       int
	bodies      map[catalog.SegmentID][]byte // fetched, not yet decoded
	used        [][]byte                     // decoded bodies, whose memory the next ones use
	kept        []kept                       // all sources; nil: not all of them are in memory
	tombs       []catalog.Tombstone          // of the job's window
	gather      *merge.Gather                // of the segments since the last other source; nil: none
	gatherBytes int64                        // its memory, which is part of out.memory
}

// open opens the oldest sources that MemoryBytes holds, and at least two; of a slice job it opens
// all. srcs are in the order of ranks, tombs those of the window. The caller closes the result,
// also after an error.
func (s *Stage) open(ctx context.Context, tenant string, job *plan.Job, srcs []plan.Source, tombs []catalog.Tombstone) (*opened, error) {
	seed, err := s.ids.seed()
	if err != nil {
		return &opened{}, err
	}
	table := usedTables.Get().(*series.Table)
	table.Reset(seed)
	o := &opener{
		s: s, ctx: ctx, tenant: tenant, job: job, tombs: tombs, bodies: map[catalog.SegmentID][]byte{},
		out:   &opened{ends: map[catalog.SegmentID]int64{}, into: merge.Into{Table: table, Slice: job.Slice}, metadata: merge.Descriptions{}},
		ahead: int(min(maxAhead, max(minAhead, s.set.MemoryBytes/int64(4*len(srcs))))),
	}
	o.kept, o.out.into.Known = o.recent(srcs)
	for i := range srcs {
		fits, err := o.one(srcs, i)
		if err != nil {
			return o.out, fmt.Errorf("open source %d of %d: %w", i+1, len(srcs), err)
		}
		if !fits {
			break
		}
	}
	o.endGather()
	return o.out, nil
}

// one opens the i-th source if it fits.
func (o *opener) one(srcs []plan.Source, i int) (fits bool, err error) {
	src := &srcs[i]
	if !src.IsSegment && !o.job.Slice.Shares(src.Block.Slice) {
		o.out.taken = append(o.out.taken, *src) // nothing of it is in the slice
		return true, nil
	}
	must := i < 2 || o.job.Kind == plan.Cut
	switch {
	case o.kept != nil:
		fits, err = o.known(src, &o.kept[i], must)
	case src.IsSegment:
		fits, err = o.segment(srcs, i, must)
	default:
		fits, err = o.block(src, must)
	}
	if err != nil || !fits {
		return fits, err
	}
	o.out.taken = append(o.out.taken, *src)
	if o.job.Kind == plan.Cut || o.out.into.Table.Bytes() <= o.s.set.MemoryBytes {
		return true, nil
	}
	if o.job.Level == key.Part { // parts are never split: this one ends here
		return i == 0, nil
	}
	return false, errSeriesMemory
}

// room reports whether n more bytes fit into MemoryBytes, beside the sources and the table.
func (o *opener) room(n int64) bool {
	return o.out.memory+o.out.into.Table.Bytes()+n <= o.s.set.MemoryBytes
}

func (o *opener) segment(srcs []plan.Source, i int, must bool) (bool, error) {
	src := &srcs[i]
	if _, ok := o.bodies[src.Segment]; !ok {
		if err := o.fetch(srcs[i:]); err != nil {
			return false, err
		}
	}
	data, name := o.bodies[src.Segment], src.Segment.Key(o.tenant).String()
	delete(o.bodies, src.Segment)
	defer func() { o.used = append(o.used, data) }() // nothing that was made of it aliases it
	f, err := segment.Open(data)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	o.end(src.Segment, data)
	if merge.Gathers(&f) && !o.hasDeletions(src) {
		if !must && !o.room(f.Samples()*gatheredSampleBytes) {
			return false, nil
		}
		err = o.gatherSegment(name, &f, src)
	} else {
		need := merge.SegmentBytes(&f)
		if !must && !o.room(need) {
			return false, nil
		}
		m, metadata, failed := merge.Segment(name, &f, &o.out.into, src.Through)
		if err = failed; err == nil {
			o.take(m, metadata, need)
		}
	}
	if err != nil {
		return false, err
	}
	o.out.samples += f.Samples()
	o.out.bytes += f.Bytes()
	o.out.hasST = o.out.hasST || f.HasST()
	o.s.met.segmentsMerged.WithLabelValues("store").Inc()
	return true, nil
}

// hasDeletions reports whether a tombstone applies to a source.
func (o *opener) hasDeletions(src *plan.Source) bool {
	return slices.ContainsFunc(o.tombs, func(t catalog.Tombstone) bool { return t.Covers(src.Through) })
}

// gatherSegment adds a segment to those before it.
func (o *opener) gatherSegment(name string, f *segment.File, src *plan.Source) error {
	if o.gather == nil {
		o.gather, o.gatherBytes = merge.NewGather(&o.out.into), 0
	}
	metadata, err := o.gather.Add(name, f, src.Through)
	if err != nil {
		return err
	}
	o.out.metadata.Add(metadata)
	o.out.memory += o.gather.Bytes() - o.gatherBytes
	o.gatherBytes = o.gather.Bytes()
	return nil
}

// known opens a segment whose content is in memory, or segments whose samples are in a head, with
// the first of them.
func (o *opener) known(src *plan.Source, k *kept, must bool) (bool, error) {
	if c := k.content; c != nil {
		need := merge.RecentBytes(c)
		if !must && !o.room(need) {
			return false, nil
		}
		m, err := merge.Recent(src.Segment.Key(o.tenant).String(), c, &o.out.into, src.Through)
		if err != nil {
			return false, err
		}
		o.take(m, c.Metadata, need)
		o.out.samples += c.Samples()
		o.out.hasST = o.out.hasST || c.ST != nil
	} else {
		if p := k.part; p != nil {
			need := merge.WaitingBytes(p)
			if !must && !o.room(need) {
				return false, nil
			}
			o.take(merge.Waiting("the last samples", p, k.through), nil, need)
		}
		o.out.metadata.Add(k.waiting.Metadata)
		o.out.samples += k.waiting.Samples
	}
	o.out.bytes += src.Bytes
	o.s.met.segmentsMerged.WithLabelValues("memory").Inc()
	return true, nil
}

// endGather makes a source of the segments that were gathered.
func (o *opener) endGather() {
	if o.gather != nil {
		o.out.merge, o.gather = append(o.out.merge, o.gather.Source("segments")), nil
	}
}

// take appends a source that ranks above those before it.
func (o *opener) take(m *merge.Source, metadata []segment.Metadata, memory int64) {
	o.endGather()
	o.out.merge = append(o.out.merge, m)
	o.out.metadata.Add(metadata)
	o.out.memory += memory
}

// fetch reads the first segment of srcs, and with it the next few.
func (o *opener) fetch(srcs []plan.Source) error {
	var ids []catalog.SegmentID
	for i := 0; i < len(srcs) && len(ids) < fetchAhead; i++ {
		if srcs[i].IsSegment {
			ids = append(ids, srcs[i].Segment)
		}
	}
	bodies := make([][]byte, len(ids))
	g, ctx := errgroup.WithContext(o.ctx)
	for i, id := range ids {
		var memory []byte
		if n := len(o.used); n > 0 {
			memory, o.used = o.used[n-1], o.used[:n-1]
		}
		g.Go(telemetry.Guard(func() (err error) {
			bodies[i], _, err = objstore.ReadInto(ctx, o.s.store, id.Key(o.tenant).String(), memory)
			return err
		}))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, id := range ids {
		o.bodies[id] = bodies[i]
	}
	return nil
}

func (o *opener) block(src *plan.Source, must bool) (bool, error) {
	need := min(src.Block.Samples, groupRows)*decodedRowBytes + src.Block.Series*plan.RowBytes
	if !must && !o.room(need) {
		return false, nil
	}
	files := blockio.NewReader(o.ctx, o.s.store, src.Block.Key(o.tenant), o.ahead)
	o.out.closers = append(o.out.closers, files)
	r, err := block.Open(files)
	if err != nil {
		return false, fmt.Errorf("open block %s: %w", src.Block.BlockID(), err)
	}
	m, metadata, err := merge.Block(src.Block.BlockID().String(), r, &o.out.into, src.Through)
	if err != nil {
		return false, err
	}
	o.take(m, metadata, need)
	o.out.samples += src.Block.Samples
	o.out.bytes += src.Bytes
	o.out.hasST = o.out.hasST || r.Meta().HasST
	return true, nil
}
