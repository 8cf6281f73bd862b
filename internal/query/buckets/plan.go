package buckets

import (
	"cmp"
	"math"
	"slices"

	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/query/lookup"
)

// plan is which rows of some series are stored. The row of a bucket that is stored counts unless
// the bucket is in a span that is computed of its series.
type plan struct {
	res  *lookup.Resolution
	step rollup.Step
	all  span // what is asked for

	spans    [][]span   // by series: what is computed; ascending, apart
	hists    []int      // series with native histograms, of which all is computed
	members  [][]member // by object: the series of which its rollup has rows, by row
	computed []batch    // of the other series
}

// span is the times (from, to] (ms), whole buckets.
type span struct{ from, to int64 }

// batch is some series with a span that is computed of them.
type batch struct {
	span
	series []int
}

// member is a series in an object whose rollup has rows of it.
type member struct {
	series int
	row    int32 // in the object's series table
	joined int64 // bucket (ms) of the first row, which another object joins to its last one; or never
	next   place // of the row whose first bucket is joined to this one's last
}

// place is a row in the series table of an object. Object -1 is none.
type place struct {
	object int
	row    int32
	bucket int64 // of its first sample, ms
}

// never is no bucket.
const never = math.MinInt64

// maxSpans is the number of different spans beyond which all series are computed wherever one of
// them is: each span is a read.
const maxSpans = 64

// newPlan plans the read of the buckets that are within [mint, maxt] (ms).
func newPlan(res *lookup.Resolution, step rollup.Step, mint, maxt int64) *plan {
	p := &plan{
		res: res, step: step, all: span{step.EndOf(mint - 1), step.BucketOf(maxt + 1)},
		spans: make([][]span, len(res.Series)), members: make([][]member, len(res.Objects)),
	}
	if p.all.from >= p.all.to {
		return p
	}
	for i := range res.Series {
		p.add(i)
	}
	for _, m := range p.members {
		slices.SortFunc(m, func(a, b member) int { return cmp.Compare(a.row, b.row) })
	}
	of := map[span][]int{}
	for i := range p.spans {
		for _, s := range p.spans[i] {
			of[s] = append(of[s], i)
		}
	}
	if len(of) > maxSpans {
		// Every series of which anything is computed is computed wherever one of them is.
		var all []span
		for s := range of {
			all = append(all, s)
		}
		all = union(all)
		clear(of)
		for i := range p.spans {
			if len(p.spans[i]) > 0 {
				p.spans[i] = all
				for _, s := range all {
					of[s] = append(of[s], i)
				}
			}
		}
	}
	for s, series := range of {
		for _, b := range p.res.Batches(series, s.from+1, s.to, func(i int) int64 { return p.res.Estimate(i, s.from+1, s.to) }) {
			positions := make([]int, len(b))
			for i, k := range b {
				positions[i] = series[k]
			}
			p.computed = append(p.computed, batch{s, positions})
		}
	}
	slices.SortStableFunc(p.computed, func(a, b batch) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return p
}

// part is the samples of a series in an object that has a rollup of them.
type part struct {
	place
	first, last int64 // ms
}

// add plans the read of a series.
func (p *plan) add(series int) {
	x := &p.res.Series[series]
	var parts []part
	several := p.res.Replicas != nil && len(p.res.Replicas[series]) > 1 // a row is over all samples of one
	for _, at := range x.At {
		o := int(at.Object)
		f := p.res.Objects[o].Footer
		first, last := p.res.Tables[o].Times(int(at.Row))
		_, n := p.res.Floats(at)
		switch {
		case p.res.Hists(at) > 0:
			p.hists, p.spans[series] = append(p.hists, series), nil
			return
		case n == 0 || first > p.all.to || last <= p.all.from:
			continue
		case several || f.Meta == nil || f.Meta.File(p.step.Name) == nil || !p.step.Keeps(n, first, last):
			p.compute(series, f.MinT, f.MaxT) // of all its series, so that they have spans in common
			continue
		}
		parts = append(parts, part{place{o, at.Row, p.step.BucketOf(first)}, first, last})
		for gone := range p.res.Deletions.In(o, x.Tombstones) {
			if gone.Mint <= last && gone.Maxt >= first {
				p.compute(series, max(gone.Mint, f.MinT), min(gone.Maxt, f.MaxT))
			}
		}
	}
	// Where two objects have samples among one another's, the rank of each decides, so their
	// buckets are computed. If they only meet in a bucket, its rows are joined if the later one
	// has only the sample at the bucket's end.
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.first, b.first) })
	latest := 0 // of the parts before: that which ends last
	at := make([]int, len(parts))
	for i, x := range parts {
		m := member{series: series, row: x.row, joined: never, next: place{object: -1}}
		if i > 0 {
			before := parts[latest]
			switch {
			case x.first <= before.last:
				p.compute(series, x.first, min(x.last, before.last))
			case p.step.BucketOf(x.first) != p.step.BucketOf(before.last):
			case x.first == p.step.EndOf(x.first):
				m.joined = x.bucket
				p.members[before.object][at[latest]].next = x.place
			default:
				p.compute(series, x.first, x.first)
			}
			if x.last > before.last {
				latest = i
			}
		}
		at[i] = len(p.members[x.object])
		p.members[x.object] = append(p.members[x.object], m)
	}
	p.spans[series] = union(p.spans[series])
}

// compute adds the buckets with times in [from, to] (ms) to those that are computed of a series.
func (p *plan) compute(series int, from, to int64) {
	s := span{max(p.step.BucketOf(from), p.all.from), min(p.step.EndOf(to), p.all.to)}
	if s.from < s.to {
		p.spans[series] = append(p.spans[series], s)
	}
}

// union orders spans and joins those that touch.
func union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// counts reports whether a stored row of a bucket (ms) of a series counts.
func (p *plan) counts(series int, bucket int64) bool {
	if bucket < p.all.from || bucket >= p.all.to {
		return false
	}
	spans := p.spans[series]
	i, in := slices.BinarySearchFunc(spans, bucket, func(s span, bucket int64) int { return cmp.Compare(s.from, bucket) })
	return !in && (i == 0 || spans[i-1].to <= bucket)
}
