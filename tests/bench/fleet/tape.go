package fleet

import (
	"fmt"
	"math"
)

// tape is one captured series of one host, ready to be played again and again.
type tape struct {
	*shape
	times []int64 // of the captured values, ms
	// by pass: the scale of the values (of a counter: of its increases); all 1 if nothing varies
	factor []float64
	base   []float64 // counter on a grid: by pass, the steps of the grid at which it begins
	laps   [][]float64
}

// newTape prepares laps passes through the capture for the host and series of hash h.
func newTape(sh *shape, times []int64, h uint64, laps int, vary bool) (tape, error) {
	t := tape{shape: sh, times: times}
	for lap := range laps {
		f := 1.0
		if vary && sh.kind != constant && sh.grid.step != 0 {
			f = 0.5 + unit(mix(h+uint64(lap)))/2
		}
		t.factor = append(t.factor, f)
	}
	if sh.kind != counter {
		return t, nil
	}
	if sh.grid.step == 0 {
		return t, t.advanceDecimals(laps)
	}
	return t, t.advanceSteps(laps)
}

// at returns the value at step i of a pass, which is played at ts (ms).
func (t *tape) at(lap, i int, ts int64) float64 {
	v := t.values[i]
	switch {
	case t.kind == constant:
		return v
	case t.kind == clock:
		return t.grid.round(v + float64(ts-t.times[i])/1000)
	case t.laps != nil:
		return t.laps[lap][i]
	case t.kind == counter:
		return t.grid.value(t.base[lap] + math.Round((t.grid.steps(v)-t.grid.steps(t.values[0]))*t.factor[lap]))
	}
	return t.grid.round(v * t.factor[lap])
}

// advanceSteps computes the value at which a counter on a grid begins each pass: the end of the
// previous pass. Whole steps of the grid add no rounding noise beyond the exporter's own.
func (t *tape) advanceSteps(laps int) error {
	first, last := t.grid.steps(t.values[0]), t.grid.steps(t.values[len(t.values)-1])
	begin := first
	for lap := range laps {
		t.base = append(t.base, begin)
		begin += math.Round((last - first) * t.factor[lap])
		if math.Abs(begin) >= 1<<53 {
			return fmt.Errorf("%d passes through the capture bring it beyond 2^53 steps of %v", lap+1, t.grid)
		}
	}
	return nil
}

// advanceDecimals computes the passes of a counter on no grid: it adds the increases of all
// previous passes exactly to the shortest decimals of the values, and rounds the sums to doubles.
func (t *tape) advanceDecimals(laps int) error {
	for lap := range laps {
		v, err := addRises(t.values, lap)
		if err != nil {
			return err
		}
		t.laps = append(t.laps, v)
	}
	return nil
}
