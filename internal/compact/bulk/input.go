// Package bulk writes histories from outside of the store, such as the blocks of a Prometheus,
// straight into blocks, beside writers and compactors that use the tenant meanwhile.
//
//	records ─▶ plan: units ─▶ scan, merge ─▶ files of the block ─▶ manifest ─▶ record
//
// A unit is the samples of a part of the series in one window. It becomes one block, which is live
// from the commit of the manifest on (catalog.Add). This commit also puts into the manifest which
// inputs the block holds. The record, an object of its own, says the same. Only when it is written
// does a later commit take the import out of the manifest. So wherever an import is cut short, and
// whatever becomes of the block (compaction, deletion, retention), the next import sees what was
// imported.
//
// The rank of an imported block is lower than that of everything that was written to the store.
// Samples that the store has therefore win over imported ones of the same series and time. Of two
// imported ones, that of the later input wins.
package bulk

import (
	"context"
	"time"

	"github.com/promlake/promlake/internal/compact/merge"
	"github.com/promlake/promlake/internal/format/series"
)

// Input is a part of a history, such as a block of Prometheus.
type Input struct {
	// ID identifies the samples: inputs with equal IDs have the same ones.
	ID      string
	Written time.Time // of inputs with a sample of the same series and time, the latest one wins
	MinT    int64     // ms, inclusive, of all samples
	MaxT    int64     // ms, inclusive
	Samples int64     // about
	// Open makes the samples readable. It is called once; Close follows.
	Open func(ctx context.Context) (Opened, error)
}

// Opened is an input that can be read. Scan may be called concurrently.
type Opened interface {
	// Scan finds the series with samples in [from, to) (ms) that keep wants. keep takes labels by
	// name, without empty values.
	Scan(ctx context.Context, from, to int64, keep Keep) (Rows, error)
	Close() error
}

// Keep returns the reference of a label set, whose slice it does not keep, and whether it is
// wanted. If so, Rows needs this many bytes of memory for it.
type Keep func(lset []series.Label, bytes int64) (series.Ref, bool, error)

// Rows are the series that Scan found.
type Rows = merge.Rows

// overlaps reports whether the input may have samples in [from, to).
func (in *Input) overlaps(from, to int64) bool { return in.MinT < to && in.MaxT >= from }

// within estimates the number of samples in [from, to).
func (in *Input) within(from, to int64) int64 {
	all := in.MaxT - in.MinT + 1
	part := min(in.MaxT+1, to) - max(in.MinT, from)
	if part <= 0 || all <= 0 {
		return 0
	}
	return max(1, int64(float64(in.Samples)*float64(part)/float64(all)))
}
