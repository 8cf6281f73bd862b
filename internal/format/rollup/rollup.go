// Package rollup writes and reads exact downsamples: per series and bucket of 5 minutes or 1 hour,
// the values from which range functions are answered without the samples, and those that show when
// that is impossible. schemas/rollup.md specifies the format.
//
// A bucket is the half-open range (start, start+step], as PromQL's ranges are: a range of one step
// that ends at start+step selects exactly the samples of the bucket, with the one at its end.
// Buckets are aligned to multiples of the step since the Unix epoch. Only float samples are rolled
// up; native histograms are not.
package rollup

import (
	"errors"
	"sort"
	"time"
)

// Version is the version of the format. Every file has it in its key-value metadata under
// VersionKey.
const (
	// 1: every series has rows; 2: also those of less than leastSeries samples; 3: figures are never
	// differences, and Sum does not contain SumC
	Version    = 4
	VersionKey = "promlake.rollup.version"
	StepKey    = "promlake.rollup.step_ms" // width of the file's buckets, ms
)

// ErrFormat reports bytes that are not a rollup of version 1 to 4.
var ErrFormat = errors.New("not a rollup")

// Step is the width of a bucket.
type Step struct {
	Name   string // of the file
	Millis int64
}

// Steps returns the widths of a block's rollups, the finest first.
func Steps() []Step {
	return []Step{
		{Name: "rollup-5m.parquet", Millis: (5 * time.Minute).Milliseconds()},
		{Name: "rollup-1h.parquet", Millis: time.Hour.Milliseconds()},
	}
}

// leastSamples is the least number of samples per bucket, on average, for which a series has rows.
// A row takes as many bytes as about twenty samples.
const leastSamples = 32

// leastSeries is the least number of samples for which a series has rows: fewer are read as quickly
// as the rows.
const leastSeries = 1024

// Keeps reports whether a series has rows in the rollup: it must have at least 1,024 samples, and
// at least 32 for each bucket from the first sample to the last (ms). A longer time never turns
// false into true. Files of earlier versions may have rows of other series, too.
func (s Step) Keeps(samples, first, last int64) bool {
	return samples >= leastSeries && samples >= leastSamples*((s.BucketOf(last)-s.BucketOf(first))/s.Millis+1)
}

// BucketOf returns the start (exclusive, ms) of the bucket of this width that holds timestamp t
// (ms).
func (s Step) BucketOf(t int64) int64 {
	q := (t - 1) / s.Millis
	if (t-1)%s.Millis < 0 {
		q--
	}
	return q * s.Millis
}

// EndOf returns the end (inclusive, ms) of the bucket of this width that holds timestamp t (ms).
func (s Step) EndOf(t int64) int64 { return s.BucketOf(t) + s.Millis }

// first returns the empty row of the bucket of the first of some times (ms), which ascend, and how
// many of them are in the bucket.
func (s Step) first(ts []int64) (row Row, n int) {
	row.Bucket = s.BucketOf(ts[0])
	end := row.Bucket + s.Millis
	return row, 1 + sort.Search(len(ts)-1, func(i int) bool { return ts[i+1] > end })
}
