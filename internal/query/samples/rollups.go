package samples

import (
	"slices"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/source"
)

// Rollups records where a leaf reads rollups instead of samples. The answer is the same, bit for
// bit: one stand-in sample counts for all samples of a bucket, and each window of the leaf holds
// all of the bucket or none of it. A nil one reads samples everywhere.
type Rollups struct {
	res     *lookup.Resolution
	standIn rollup.StandIn
	blocks  []rollupPart // by object
}

// rollupPart is the part of a block's time in which its rollup is read.
type rollupPart struct {
	file   *block.File // nil: its samples are read
	step   rollup.Step
	lo, hi int64 // ms: the times (lo, hi], whole buckets
	rivals []int // the other objects that may have samples at these times
	places *Places
}

// standIns are the stand-ins that suffice for a function (see schemas/rollup.md). Rates, sums and
// means are missing: they need the number of samples, or their exact sum, where a stand-in shows
// one sample.
var standIns = map[string]rollup.StandIn{
	"prom_max_over_time":         rollup.StandInMax,
	"prom_min_over_time":         rollup.StandInMin,
	"prom_last_over_time":        rollup.StandInLast,
	"prom_ts_of_last_over_time":  rollup.StandInLast,
	"prom_present_over_time":     rollup.StandInLast,
	"prom_first_over_time":       rollup.StandInFirst,
	"prom_ts_of_first_over_time": rollup.StandInFirst,
	"prom_count_over_time":       rollup.StandInCount,
	"prom_instant":               rollup.StandInInstant,
	"prom_timestamp":             rollup.StandInInstant,
}

// FindRollups finds the blocks whose rollups answer a leaf over some series of a resolution in
// [mint, maxt] (ms) with fewer rows than there are samples. It returns nil if there are none.
func FindRollups(l *plan.Leaf, res *lookup.Resolution, wanted []int, mint, maxt int64) *Rollups {
	standIn, ok := standIns[l.Func]
	if !ok || res.Replicas != nil || res.HeadFrom > 0 || !slices.ContainsFunc(res.Objects, hasRollups) { // a bucket stands for samples of one replica
		return nil
	}
	x := &Rollups{res: res, standIn: standIn, blocks: make([]rollupPart, len(res.Objects))}
	shares := make([]share, len(res.Objects))
	for _, w := range wanted {
		for _, p := range res.Series[w].At {
			if res.Objects[p.Object].Footer.Meta == nil {
				continue // segments have no rollups
			}
			if _, n := res.Floats(p); n > 0 {
				shares[p.Object].series++
				shares[p.Object].samples += n
			}
		}
	}
	some := false
	for i := range res.Objects {
		if m := res.Objects[i].Footer.Meta; m != nil && shares[i].series > 0 {
			x.blocks[i] = choose(l.Spec, m, shares[i], mint, maxt)
		}
		b := &x.blocks[i]
		if b.file == nil {
			continue
		}
		some = true
		f := res.Objects[i].Footer
		from, upto := max(b.lo+1, f.MinT), min(b.hi, f.MaxT)
		for k := range res.Objects {
			if g := res.Objects[k].Footer; k != i && g.MinT <= upto && g.MaxT >= from {
				b.rivals = append(b.rivals, k)
			}
		}
	}
	if !some {
		return nil
	}
	return x
}

// hasRollups reports whether an object is a block with rollups.
func hasRollups(o source.Object) bool {
	m := o.Footer.Meta
	return m != nil && slices.ContainsFunc(rollup.Steps(), func(s rollup.Step) bool { return m.File(s.Name) != nil })
}

// share is the part of a block that a leaf reads.
type share struct{ series, samples int64 }

// rollupGroup is about the number of rows of a row group of a rollup. All of them are decoded and
// cached for any one of them.
const rollupGroup = 64 << 10

// choose returns the widest rollup of a block that is worth reading for times of [mint, maxt] (ms),
// the zero value if none is: it must have far fewer rows to decode than it stands for samples.
func choose(spec plan.Spec, m *block.Meta, of share, mint, maxt int64) rollupPart {
	for _, step := range slices.Backward(rollup.Steps()) {
		file, width := m.File(step.Name), step.Millis
		lo, hi, ok := interior(spec, step)
		lo, hi = max(lo, step.EndOf(mint-1)), min(hi, step.BucketOf(maxt+1))
		from, upto := max(lo+1, m.MinT), min(hi, m.MaxT)
		if file == nil || !ok || from > upto {
			continue
		}
		buckets := (m.MaxT-m.MinT)/width + 1
		rows := min(m.Series*buckets, of.series*buckets+rollupGroup)
		spared := float64(of.samples) * float64(upto-from+1) / float64(m.MaxT-m.MinT+1)
		if float64(2*rows) <= spared {
			return rollupPart{file: file, step: step, lo: lo, hi: hi}
		}
	}
	return rollupPart{}
}

// interior returns the times (lo, hi] (ms), multiples of the width of a step, in which each window
// of a spec holds a whole bucket of that width or nothing of it: all times if the windows begin and
// end on such multiples, otherwise those that all windows have in common. ok is false if there is
// no bucket.
func interior(s plan.Spec, step rollup.Step) (lo, hi int64, ok bool) {
	first, width := s.Grid.Start-s.Offset, step.Millis
	last := first + int64(s.Grid.N-1)*s.Grid.Step
	if first%width == 0 && (s.Grid.N == 1 || s.Grid.Step%width == 0) && s.Window%width == 0 {
		return first - s.Window, last, s.Window > 0
	}
	lo, hi = step.EndOf(last-s.Window), step.BucketOf(first+1)
	return lo, hi, hi > lo
}

// File returns the rollup that is read of an object, nil if its samples are read.
func (x *Rollups) File(object int) *block.File { return x.blocks[object].file }

// answers reports whether the rollup of an object can replace a series' samples there: it has rows
// of the series, no sample is deleted, and no other object has samples among them, which could
// count instead.
func (x *Rollups) answers(series, object int) bool {
	b := &x.blocks[object]
	if b.file == nil {
		return false
	}
	s, d := &x.res.Series[series], &x.res.Deletions
	at := s.At[s.In(object)]
	_, n := x.res.Floats(at)
	from, upto := x.res.Tables[object].Times(int(at.Row))
	switch {
	case !b.step.Keeps(n, from, upto):
		return false
	case len(s.Tombstones) == 0 && len(b.rivals) == 0:
		return true
	}
	from, upto = max(b.lo+1, from), min(b.hi, upto)
	for gone := range d.In(object, s.Tombstones) {
		if gone.Mint <= upto && gone.Maxt >= from {
			return false
		}
	}
	for _, rival := range b.rivals {
		if k := s.In(rival); k >= 0 {
			if first, last := x.res.Tables[rival].Times(int(s.At[k].Row)); first <= upto && last >= from {
				return false
			}
		}
	}
	return true
}

// Estimate is about the number of samples and stand-ins that are read of a series of res in [mint,
// maxt] (ms).
func (x *Rollups) Estimate(res *lookup.Resolution, series int, mint, maxt int64) (n int64) {
	if x == nil {
		return res.Estimate(series, mint, maxt)
	}
	for _, p := range res.Series[series].At {
		f := res.Objects[p.Object].Footer
		_, floats := res.Floats(p)
		if !x.answers(series, int(p.Object)) {
			n += f.Estimate(floats, mint, maxt)
			continue
		}
		b := &x.blocks[p.Object]
		n += f.Estimate(floats, mint, b.lo) + f.Estimate(floats, b.hi, maxt) + (min(b.hi, f.MaxT)-max(b.lo, f.MinT))/b.step.Millis + 1
	}
	return n
}
