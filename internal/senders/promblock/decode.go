package promblock

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/live"
)

// decode appends the samples of a chunk that are in r's range.
func (r *Rows) decode(p *place, floats *live.Run, hists []segment.Hist) (out []segment.Hist, err error) {
	out = hists // of a panic
	defer guard(&err)
	r.chunk.Ref = p.ref
	c, err := r.source.load(r.chunk)
	if err != nil {
		return hists, err
	}
	whole := p.minT >= r.from && p.maxT < r.to
	switch c.Encoding() {
	case chunkenc.EncXOR:
		r.floats = c.Iterator(r.floats)
		err = r.xor(r.floats, c.NumSamples(), whole, floats)
	default:
		if err = checkBuckets(c); err == nil {
			r.others = c.Iterator(r.others)
			hists, err = r.any(r.others, whole, floats, hists)
		}
	}
	if err != nil {
		return hists, err
	}
	return hists, r.source.release(c)
}

// outside is the error of a chunk whose times are said to be in the range, and one is not. Its
// sample would be lost: no other range has the chunk.
func outside(t int64) error {
	return fmt.Errorf("it has a sample at %d ms, outside of its times in the index", t)
}

// xor appends the floats of a chunk of n samples without start timestamps. whole: all of them are
// said to be in r's range.
func (r *Rows) xor(it chunkenc.Iterator, n int, whole bool, dst *live.Run) error {
	at := len(dst.TS)
	ts, vs := slices.Grow(dst.TS, n)[:at+n], slices.Grow(dst.V, n)[:at+n]
	got := at
	for it.Next() == chunkenc.ValFloat {
		t, v := it.At()
		if t < r.from || t >= r.to {
			if whole {
				return outside(t)
			}
			continue
		}
		if got == len(ts) {
			return fmt.Errorf("it has more than its %d samples", n)
		}
		ts[got], vs[got] = t, v
		got++
	}
	dst.TS, dst.V = ts[:got], vs[:got]
	if err := it.Err(); err != nil {
		return err
	}
	if whole && got != at+n {
		return fmt.Errorf("it has %d of its %d samples", got-at, n)
	}
	return nil
}

// any appends the samples of a chunk of any encoding. whole is as for xor.
func (r *Rows) any(it chunkenc.Iterator, whole bool, floats *live.Run, hists []segment.Hist) ([]segment.Hist, error) {
	for {
		kind := it.Next()
		if kind == chunkenc.ValNone {
			return hists, it.Err()
		}
		if t := it.AtT(); t < r.from || t >= r.to {
			if whole {
				return hists, outside(t)
			}
			continue
		}
		switch kind {
		case chunkenc.ValFloat:
			t, v := it.At()
			floats.TS, floats.V = append(floats.TS, t), append(floats.V, v)
			if st := it.AtST(); st != 0 {
				floats.ST = append(floats.ST, make([]int64, len(floats.TS)-len(floats.ST))...)
				floats.ST[len(floats.TS)-1] = st
			}
		case chunkenc.ValHistogram:
			t, h := it.AtHistogram(nil)
			h.CounterResetHint = hint(h.CounterResetHint)
			hists = append(hists, segment.Hist{ST: it.AtST(), T: t, H: h})
		case chunkenc.ValFloatHistogram:
			t, h := it.AtFloatHistogram(nil)
			h.CounterResetHint = hint(h.CounterResetHint)
			hists = append(hists, segment.Hist{ST: it.AtST(), T: t, FH: h})
		default:
			return hists, fmt.Errorf("it has a sample of the unknown kind %s", kind)
		}
	}
}

// hint is the hint to store. NotCounterReset refers to the sample before in the chunk, and after a
// merge another sample may be before it. Readers that get no hint compare.
func hint(h histogram.CounterResetHint) histogram.CounterResetHint {
	if h == histogram.NotCounterReset {
		return histogram.UnknownCounterReset
	}
	return h
}

// ascend sorts the samples from position at on if they are not ascending, because chunks of a
// series overlap. Of samples with equal times, the last one stays.
func ascend(r *live.Run, at int) {
	ts := r.TS[at:]
	ok := true
	for i := 1; i < len(ts); i++ {
		ok = ok && ts[i-1] < ts[i]
	}
	if ok {
		return
	}
	order := make([]int, len(ts))
	for i := range order {
		order[i] = at + i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.TS[a], r.TS[b]) })
	sorted := live.Run{}
	for i, from := range order {
		if i+1 == len(order) || r.TS[from] != r.TS[order[i+1]] {
			sorted.Append(r.Slice(from, from+1))
		}
	}
	r.TS, r.V, r.ST = r.TS[:at], r.V[:at], r.ST[:min(at, len(r.ST))]
	r.Append(sorted)
}

// ascendHists is ascend for histograms.
func ascendHists(h []segment.Hist, at int) []segment.Hist {
	part := h[at:]
	slices.SortStableFunc(part, func(a, b segment.Hist) int { return cmp.Compare(a.T, b.T) })
	kept := part[:0]
	for i := range part {
		if i+1 == len(part) || part[i].T != part[i+1].T {
			kept = append(kept, part[i])
		}
	}
	return h[:at+len(kept)]
}
