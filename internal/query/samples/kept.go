package samples

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/query/index"
)

// kept are decoded float samples of a row group: those of some ranges of rows, or of all rows. They
// are immutable.
type kept struct {
	ranges []batch // by range
	all    *batch  // of all rows, from first on; ranges is empty then
	first  int64
	frame  *block.Frame // has the times of all, which series share; empty: each sample has its own
	bytes  int64
}

// Bytes implements index.Sized.
func (k *kept) Bytes() int64 { return k.bytes }

// The inverses of the shares of the cache that the kept samples of some ranges of a row group, of
// all of it, and of one read may take. What takes more is decoded for every read.
const (
	keptRangesShare = 256
	keptGroupShare  = 32
	keptReadShare   = 16
)

// keptSampleBytes is the memory of a sample with a start timestamp.
const keptSampleBytes = 24

// Keeps reports whether all batches of a read of n samples may keep them.
func (s *Reader) Keeps(n int64) bool { return n*keptSampleBytes <= s.settings.CacheBytes/keptReadShare }

const (
	// repeatedAfter is the number of reads of the same rows, in windows that are short beside their
	// row group, after which the next one keeps all of their samples.
	repeatedAfter = 2
	// repeatedShare is the inverse of the share of the cache that the samples of all rows whose reads
	// are counted take, without start timestamps. Where panels read more than that in turn, keeping
	// it would only push out what others read.
	repeatedShare = 64
)

// planFloats plans the read of the float samples in blocks, and takes those that are kept of an
// earlier read.
func (r *Collector) planFloats(ctx context.Context) (*readPlan, error) {
	var failed error
	hits, misses, room := 0, 0, r.reader.settings.CacheBytes/keptReadShare
	var fragments []fragment // of a row group
	p := r.plan(ctx, block.FloatFiles, r.MinT, (*index.Table).Floats, func(g *rowGroup) bool {
		bytes := keptBytes(g.rows)
		if !r.keep || bytes > r.reader.settings.CacheBytes/keptRangesShare {
			return false
		}
		series := r.Objects[g.object].Series
		all, own := keptKey(series, g.allRows()), keptKey(series, g.rows)
		found := index.Peek[*kept](r.reader.cache, own)
		if found == nil {
			found = index.Peek[*kept](r.reader.cache, all)
		}
		if found == nil {
			// All samples are decoded to be kept if most are in the range: rules and panels read
			// the same rows again, in windows that move on.
			inside := 2*(min(g.group.MaxT, r.MaxT)-max(g.group.MinT, r.MinT)) >= g.group.MaxT-g.group.MinT
			if misses++; bytes <= room && (inside || r.reader.repeats.Enough(own, g.samples())) {
				room -= bytes
				fits := inside && keptBytes(g.allRows()) <= r.reader.settings.CacheBytes/keptGroupShare
				if g.key = own; fits && r.reader.partial.Enough(all, 1) {
					g.key, g.all = all, true
				}
			}
			return false
		}
		hits++
		var err error
		if fragments, err = r.within(fragments[:0], g, found); err != nil {
			failed = err
			return true
		}
		r.takeGroup(g, fragments)
		return true
	})
	r.reader.metrics.CountLookups("samples", hits, misses)
	return p, failed
}

// allRows are all rows of the row group, as one range.
func (g *rowGroup) allRows() []block.Rows {
	return []block.Rows{{From: g.group.FirstRow, N: g.group.Rows}}
}

// samples is the number of samples of the rows that are read.
func (g *rowGroup) samples() (n int64) {
	for _, x := range g.rows {
		n += x.N
	}
	return n
}

// keptBytes is the memory of the samples of some rows, at most.
func keptBytes(rows []block.Rows) (bytes int64) {
	for _, x := range rows {
		bytes += keptSampleBytes * x.N
	}
	return bytes
}

// keptKey returns the key of the samples of some rows of a block. series is the key of its series
// file, which no other object has.
func keptKey(series string, rows []block.Rows) string {
	b := make([]byte, 0, 256)
	for _, r := range rows {
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(r.From)), uint64(r.N))
	}
	sum := xxh3.Hash128(b).Bytes()
	return index.PartKey("samples", series, string(sum[:]))
}

// keptFloats reads one row group through the cache.
func (r *Collector) keptFloats(ctx context.Context, g *rowGroup) ([]fragment, error) {
	o := &r.Objects[g.object]
	k, _, err := index.Get(ctx, r.reader.cache, g.key, func() (*kept, error) { return decodeKept(g, o.Footer.Meta.HasST) })
	switch {
	case err != nil && g.all: // what this read does not want may be damaged
		g.key, g.all = keptKey(o.Series, g.rows), false
		return r.keptFloats(ctx, g)
	case err != nil:
		return nil, err
	}
	return r.within(make([]fragment, 0, len(g.rows)), g, k)
}

// decodeKept reads the samples that a row group is to keep; st means that it has start timestamps.
func decodeKept(g *rowGroup, st bool) (*kept, error) {
	fr := floatReaders.Get().(*block.FloatReader)
	defer floatReaders.Put(fr)
	rows, frame := g.rows, new(block.Frame)
	var total int64
	var err error
	if g.all {
		rows = g.allRows()
		if !st {
			frame, err = block.ReadFrame(g.in, g.group)
		}
	}
	if err == nil && frame.Empty() {
		total, err = fr.Select(g.in, g.group, st, rows, math.MinInt64, math.MaxInt64)
	} else if err == nil {
		total = fr.SelectGroup(g.in, g.group, frame)
	}
	if err != nil {
		return nil, err
	}
	t, v := fr.AllTimes(), make([]float64, total)
	if frame.Empty() { // else they are the frame's, and it keeps them
		t = slices.Clone(t)
	}
	stale, err := fr.Values(v)
	if err != nil {
		return nil, err
	}
	var starts []int64
	if st {
		starts = make([]int64, total)
		if err := fr.Starts(starts); err != nil {
			return nil, err
		}
	}
	k := &kept{bytes: int64(128 + 8*len(t) + 8*len(v) + 8*len(starts))}
	if g.all {
		k.first, k.frame, k.all = g.group.FirstRow, frame, &batch{t: t, v: v, st: starts, clean: !stale}
		k.bytes += frame.Bytes()
		return k, nil
	}
	k.ranges = make([]batch, len(rows))
	k.bytes += int64(unsafe.Sizeof(batch{})) * int64(len(rows))
	for i, x := range fr.Rows() {
		from := fr.TimesAt(i)
		k.ranges[i] = batch{t: t[from : from+int(x.N)], v: v[:x.N:x.N], clean: !stale}
		v = v[x.N:]
		if st {
			k.ranges[i].st, starts = starts[:x.N:x.N], starts[x.N:]
		}
	}
	return k, nil
}

// within appends the kept samples of a row group that are in the range of the read, by member.
func (r *Collector) within(out []fragment, g *rowGroup, k *kept) ([]fragment, error) {
	total := int64(0)
	for i, x := range g.rows {
		b, first := k.all, int(x.From-k.first)
		if b == nil {
			b, first = &k.ranges[i], 0
		}
		at := first
		if b == k.all && !k.frame.Empty() {
			var err error
			if at, err = k.frame.TimesOf(x); err != nil {
				return nil, err
			}
		}
		lo, hi := between(b.t[at:at+int(x.N)], r.MinT, r.MaxT)
		out = append(out, fragment{b, uint32(at + lo), uint32(first + lo), uint32(hi - lo), uint32(g.object)})
		total += int64(hi - lo)
	}
	return out, r.hold(total)
}
