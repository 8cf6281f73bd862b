// Package rollup writes and reads exact downsamples: per series and bucket of 5 minutes or 1 hour, what it takes to answer range functions
// without the raw samples, and to know when that cannot be done. schemas/rollup.md is the format; Window is its meaning in code.
//
// A bucket is the half-open range (start, start+step], as PromQL's ranges are: a range of one step that ends at start+step selects
// exactly the samples of the bucket, also the one that lies on its end. Buckets are aligned to multiples of the step since the Unix epoch.
// Only float samples are rolled up; native histograms are not.
package rollup

import (
	"errors"
	"io"
	"time"
)

// Version is the version of the format, which every file carries in its key-value metadata under VersionKey.
const (
	Version    = 1
	VersionKey = "promlake.rollup.version"
	StepKey    = "promlake.rollup.step_ms" // width of the file's buckets, ms
)

// ErrFormat reports bytes that are not a rollup of a version that this package knows.
var ErrFormat = errors.New("not a rollup")

// Files is where the files of a block go. What Create returned is durable, or will be made so, once it was closed without an error.
type Files interface {
	Create(name string) (io.WriteCloser, error)
}

// File is a file that a Writer wrote.
type File struct {
	Name  string
	Bytes int64
	Rows  int64
}

// Step is the width of a bucket.
type Step struct {
	Name   string // of the file
	Millis int64
}

// Steps are the widths that a block has rollups of, the finest first.
func Steps() []Step {
	return []Step{
		{Name: "rollup-5m.parquet", Millis: (5 * time.Minute).Milliseconds()},
		{Name: "rollup-1h.parquet", Millis: time.Hour.Milliseconds()},
	}
}

// BucketOf returns the start (exclusive, ms) of the bucket of this width that holds timestamp t (ms).
func (s Step) BucketOf(t int64) int64 {
	q := (t - 1) / s.Millis
	if (t-1)%s.Millis < 0 {
		q--
	}
	return q * s.Millis
}
