package catalog

import (
	"fmt"
	"math/bits"
)

// MaxSlices bounds the slices of a split.
const MaxSlices = 1 << 16

// Slice is the part Index of Of equal parts of the series ids: those in [Index·2⁶⁴/Of,
// (Index+1)·2⁶⁴/Of). {0, 0} and {0, 1} are the whole.
type Slice struct {
	Index int `json:"index"`
	Of    int `json:"of"`
}

// Contains reports whether the series with this id (series.ID of its labels) is in the slice.
func (s Slice) Contains(id uint64) bool {
	if s.Of <= 1 {
		return true
	}
	hi, _ := bits.Mul64(id, uint64(s.Of)) // ⌊id·Of / 2⁶⁴⌋
	return hi == uint64(s.Index)
}

// Shares reports whether two slices have identifiers in common.
func (s Slice) Shares(o Slice) bool {
	if s.Of <= 1 || o.Of <= 1 {
		return true
	}
	return s.Index*o.Of < (o.Index+1)*s.Of && o.Index*s.Of < (s.Index+1)*o.Of
}

// Within reports whether all of s is in o.
func (s Slice) Within(o Slice) bool {
	if o.Of <= 1 {
		return true
	}
	return s.Of > 1 && o.Index*s.Of <= s.Index*o.Of && (s.Index+1)*o.Of <= (o.Index+1)*s.Of
}

// String returns "2/8" for the third of eight, and "whole".
func (s Slice) String() string {
	if s.Of <= 1 {
		return "whole"
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

func (s Slice) valid() bool {
	return s.Index == 0 && s.Of == 0 || s.Index >= 0 && s.Index < s.Of && s.Of <= MaxSlices
}
