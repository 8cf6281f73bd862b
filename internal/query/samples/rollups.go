package samples

import (
	"slices"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/rollup"
)

// Rollups says where a leaf reads rollups instead of samples. The answer is the same, bit for bit: one sample stands for all of a bucket, and each of the
// leaf's windows holds all of the bucket or nothing of it. A nil one reads samples everywhere.
type Rollups struct {
	res     *lookup.Resolution
	standIn rollup.StandIn
	blocks  []rollupPart // by object
}

// rollupPart is what a block's rollup is read for.
type rollupPart struct {
	file    *block.File // nil: its samples are read
	step    rollup.Step
	lo, hi  int64 // ms: the times (lo, hi], whole buckets
	rivals  []int // the other objects that may have samples at these times
	columns *rollupColumns
}

// standIns are those that functions can do with; schemas/rollup.md has why. Rates, sums and means are not among them: they need the number of samples, or
// their exact sum, in places where one sample is seen.
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

// FindRollups finds the blocks whose rollups answer a leaf of some of a resolution's series in [mint, maxt] (ms) with less than their samples. nil: none.
func FindRollups(l *plan.Leaf, res *lookup.Resolution, wanted []int, mint, maxt int64) *Rollups {
	standIn, ok := standIns[l.Func]
	if !ok {
		return nil
	}
	x := &Rollups{res: res, standIn: standIn, blocks: make([]rollupPart, len(res.Objects))}
	shares := make([]share, len(res.Objects))
	for _, w := range wanted {
		for _, p := range res.Series[w].At {
			if p.N > 0 {
				shares[p.Object].series++
				shares[p.Object].samples += p.N
			}
		}
	}
	some := false
	for i := range res.Objects {
		if m := res.Objects[i].Footer.Meta; m != nil && shares[i].series > 0 {
			x.blocks[i] = choose(l.Spec, m, shares[i], mint, maxt)
		}
		if b := &x.blocks[i]; b.file != nil {
			b.rivals, some = rivals(res, i, b), true
		}
	}
	if !some {
		return nil
	}
	return x
}

// share is what a leaf wants of a block.
type share struct{ series, samples int64 }

// choose returns the widest rollup of a block that is worth reading for times of [mint, maxt] (ms), none if there is none.
func choose(spec plan.Spec, m *block.Meta, of share, mint, maxt int64) rollupPart {
	for _, step := range slices.Backward(rollup.Steps()) {
		file := m.File(step.Name)
		lo, hi, ok := interior(spec, step.Millis)
		lo, hi = max(lo, upTo(mint-1, step.Millis)), min(hi, downTo(maxt, step.Millis))
		if file != nil && ok && worth(m, of, step.Millis, max(lo+1, m.MinT), min(hi, m.MaxT)) {
			return rollupPart{file: file, step: step, lo: lo, hi: hi}
		}
	}
	return rollupPart{}
}

// rollupGroup is about how many rows a row group of a rollup has, all of which are decoded for one of them, and kept.
const rollupGroup = 64 << 10

// worth says that a rollup of buckets of a width has far fewer rows to be decoded than there are samples in [from, upto] (ms).
func worth(m *block.Meta, of share, width, from, upto int64) bool {
	if from > upto {
		return false
	}
	buckets := (m.MaxT-m.MinT)/width + 1
	rows := min(m.Series*buckets, of.series*buckets+rollupGroup)
	spared := float64(of.samples) * float64(upto-from+1) / float64(m.MaxT-m.MinT+1)
	return float64(2*rows) <= spared
}

// interior returns the times (lo, hi] (ms), multiples of width, of which each window of a spec holds a whole bucket of that width or nothing:
// all of them if the windows begin and end on such multiples, else what all windows have in common. ok is false if there is no bucket.
func interior(s plan.Spec, width int64) (lo, hi int64, ok bool) {
	first := s.Grid.Start - s.Offset
	last := first + int64(s.Grid.N-1)*s.Grid.Step
	if first%width == 0 && (s.Grid.N == 1 || s.Grid.Step%width == 0) && s.Window%width == 0 {
		return first - s.Window, last, s.Window > 0
	}
	lo, hi = upTo(last-s.Window, width), downTo(first, width)
	return lo, hi, hi > lo
}

// downTo and upTo return the nearest multiple of width that is not after, and not before, t.
func downTo(t, width int64) int64 {
	r := t % width
	if r < 0 {
		r += width
	}
	return t - r
}

func upTo(t, width int64) int64 { return -downTo(-t, width) }

// File returns the rollup that is read of an object, nil if its samples are read.
func (x *Rollups) File(object int) *block.File { return x.blocks[object].file }

// rivals returns the other objects with times of an object that are to be rolled up.
func rivals(res *lookup.Resolution, object int, b *rollupPart) (out []int) {
	f := res.Objects[object].Footer
	from, upto := max(b.lo+1, f.MinT), min(b.hi, f.MaxT)
	for i := range res.Objects {
		if g := res.Objects[i].Footer; i != object && g.MinT <= upto && g.MaxT >= from {
			out = append(out, i)
		}
	}
	return out
}

// answers says that the rollup of an object stands for a series' samples there: none of them is deleted, and no other object has any among them, one
// of which could count instead.
func (x *Rollups) answers(series, object int) bool {
	b := &x.blocks[object]
	if b.file == nil {
		return false
	}
	s, d := &x.res.Series[series], &x.res.Deletions
	if len(s.Tombstones) == 0 && len(b.rivals) == 0 {
		return true
	}
	i := s.In(object)
	from, upto := x.res.Tables[object].Times(int(s.At[i].Row))
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

// Estimate is about how many samples and stand-ins are read of a series of res in [mint, maxt] (ms).
func (x *Rollups) Estimate(res *lookup.Resolution, series int, mint, maxt int64) (n int64) {
	if x == nil {
		return res.Estimate(series, mint, maxt)
	}
	for _, p := range res.Series[series].At {
		f := res.Objects[p.Object].Footer
		if !x.answers(series, p.Object) {
			n += f.Estimate(p.N, mint, maxt)
			continue
		}
		b := &x.blocks[p.Object]
		n += f.Estimate(p.N, mint, b.lo) + f.Estimate(p.N, b.hi, maxt) + (min(b.hi, f.MaxT)-max(b.lo, f.MinT))/b.step.Millis + 1
	}
	return n
}
