package rollup

import (
	"math"

	"github.com/promlake/promlake/internal/format/block"
)

// mostApart is the inverse of the share of a series' rows that may be left as they are when the
// others are stored as differences: columns that change between both take more bytes than either.
const mostApart = 8

// encode computes the columns of the figures.
//
// The figures of a row are near one another, and those of a series mostly decimals of one scale.
// Where they have about the divisor of Last, their difference from it is stored: it is small, also at
// the first row of another series, which the deltas of a column would otherwise step to.
func (c *columns) encode() {
	for i := range c.coded {
		c.coded[i].Reset()
	}
	begin := 0
	for _, end := range c.ends {
		c.vals = c.vals[:0]
		for f := figFirst; f <= figMax; f++ {
			c.vals = append(c.vals, c.figures[f][begin:end]...)
		}
		c.joint.Reset()
		c.enc.Encode(&c.joint, c.vals)
		n := end - begin
		for f := figFirst; f <= figMax; f++ {
			c.coded[f].Int = append(c.coded[f].Int, c.joint.Int[f*n:(f+1)*n]...)
			c.coded[f].Div = append(c.coded[f].Div, c.joint.Div[f*n:(f+1)*n]...)
		}
		for f := figSum; f <= figResetSum; f++ {
			c.enc.Encode(&c.coded[f], c.figures[f][begin:end])
		}
		c.nearEnds(begin, end)
		c.nearSums(begin, end)
		begin = end
	}
}

// nearEnds stores First, Min and Max of a series as differences, if nearly all rows can be stored so.
func (c *columns) nearEnds(begin, end int) {
	flags := c.ints[intFlags]
	near := func(i int) bool {
		d := c.coded[figLast].Div[i]
		return beside(c.coded[figFirst].Div[i], d) &&
			(flags[i]&flagMinAtEnd != 0 || beside(c.coded[figMin].Div[i], d)) && (flags[i]&flagMaxAtEnd != 0 || beside(c.coded[figMax].Div[i], d))
	}
	if !nearly(begin, end, near) {
		return
	}
	for i := begin; i < end; i++ {
		if !near(i) {
			continue
		}
		last := c.coded[figLast].Int[i]
		c.coded[figFirst].Int[i] -= last
		switch least := &c.coded[figMin].Int[i]; {
		case flags[i]&flagMinAtEnd != 0:
			flags[i] |= flagNearMin // as in the rows around it, and without effect
		case !nearZero(*least, last):
			*least -= last
			flags[i] |= flagNearMin
		}
		if flags[i]&flagMaxAtEnd == 0 {
			c.coded[figMax].Int[i] -= last
		}
		flags[i] |= flagNearEnds
	}
}

// nearZero reports whether the integer of Min is clearly nearer to 0 than to that of Last, as that of
// a counter is after a reset.
func nearZero(least, last int64) bool {
	const clearly = 8
	return math.Abs(float64(least))*clearly < math.Abs(float64(least)-float64(last))
}

// nearSums stores Sum and ResetSum of a series as differences, if nearly all rows can be stored so.
// They get the divisor of Last where it suits them.
func (c *columns) nearSums(begin, end int) {
	last := &c.coded[figLast]
	for f := figSum; f <= figResetSum; f++ {
		for i := begin; i < end; i++ {
			if whole, ok := multiple(c.figures[f][i], last.Div[i]); ok {
				c.coded[f].Int[i], c.coded[f].Div[i] = whole, last.Div[i]
			}
		}
	}
	near := func(i int) bool {
		return beside(c.coded[figSum].Div[i], last.Div[i]) && beside(c.coded[figResetSum].Div[i], last.Div[i]) &&
			math.Abs(float64(last.Int[i]))*float64(c.ints[intCount][i]) < 1<<61 // SQL must not overflow
	}
	if !nearly(begin, end, near) {
		return
	}
	for i := begin; i < end; i++ {
		if near(i) {
			c.coded[figSum].Int[i] -= c.ints[intCount][i] * last.Int[i]
			c.coded[figResetSum].Int[i] -= c.ints[intResets][i] * last.Int[i]
			c.ints[intFlags][i] |= flagNearSums
		}
	}
}

// nearly reports whether all but one in mostApart of the rows are near.
func nearly(begin, end int, near func(i int) bool) bool {
	apart := 0
	for i := begin; i < end; i++ {
		if !near(i) {
			apart++
		}
	}
	return apart*mostApart <= end-begin
}

// beside reports whether two divisors are so near one another that equal integers stand for nearly
// equal values, as those of decimals with rounding noise are.
func beside(a, b float64) bool {
	return b > math.SmallestNonzeroFloat64 && b <= math.MaxFloat64 && math.Abs(a-b) <= b*0x1p-40
}

// multiple returns the integer that d divides to v, bit for bit, if there is one.
func multiple(v, d float64) (int64, bool) {
	x := v * d
	if !(math.Abs(x) <= 1<<53) || !beside(d, d) {
		return 0, false
	}
	i := int64(math.RoundToEven(x))
	return i, math.Float64bits(block.Value(i, d)) == math.Float64bits(v)
}

// nearLast adds to the integer of a figure what was taken from it. last is the integer of Last.
func (r *Row) nearLast(figure int, whole, last int64) int64 {
	switch {
	case figure == figLast:
	case figure == figMin:
		if r.Flags&flagNearMin != 0 {
			return whole + last
		}
	case figure <= figMax:
		if r.Flags&flagNearEnds != 0 {
			return whole + last
		}
	case r.Flags&flagNearSums == 0:
	case figure == figSum:
		return whole + r.Count*last
	default:
		return whole + r.Resets*last
	}
	return whole
}
