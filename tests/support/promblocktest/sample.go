package promblocktest

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// sample is a Sample as upstream's writer takes it.
type sample struct{ Sample }

// T implements chunks.Sample.
func (s sample) T() int64 { return s.Time }

// ST implements chunks.Sample.
func (s sample) ST() int64 { return 0 }

// F implements chunks.Sample.
func (s sample) F() float64 { return s.V }

// H implements chunks.Sample.
func (s sample) H() *histogram.Histogram {
	if s.Sample.H == nil {
		return nil
	}
	return s.Sample.H.Copy()
}

// FH implements chunks.Sample.
func (s sample) FH() *histogram.FloatHistogram {
	switch {
	case s.Sample.FH != nil:
		return s.Sample.FH.Copy()
	case s.Sample.H != nil:
		return s.Sample.H.ToFloat(nil)
	}
	return nil
}

// Type implements chunks.Sample.
func (s sample) Type() chunkenc.ValueType {
	switch {
	case s.Sample.H != nil:
		return chunkenc.ValHistogram
	case s.Sample.FH != nil:
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// Copy implements chunks.Sample.
func (s sample) Copy() chunks.Sample { return s }
