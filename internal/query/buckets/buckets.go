// Package buckets reads series as buckets of 5 minutes or 1 hour: the rows of rollups where they
// are sure to stand for all samples that count, and elsewhere the same rows, computed from samples.
package buckets

import (
	"context"
	"sync/atomic"

	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/source"
)

// Reader reads buckets. It is safe for concurrent use.
type Reader struct {
	Files   *source.Files
	Samples *samples.Reader
	Metrics *request.Metrics
}

// Scan is one pass over the buckets of some series. It is safe for concurrent use.
type Scan struct {
	*plan
	reader *Reader
	ctx    context.Context
	fields []rollup.Field
	places []*samples.Places // by object: of its rollup, if that has members
	groups []group
	next   atomic.Int64 // of the units: the groups, what is computed, and series with histograms
	read   atomic.Int64 // units

	stored, fromSamples atomic.Int64 // rows
}

// Open begins a scan of the buckets that are completely within [mint, maxt] (ms) and have a sample
// that counts. Of each row, Bucket, Count and what the fields are made of are read. ctx is that of
// all reads.
func (r *Reader) Open(ctx context.Context, res *lookup.Resolution, step rollup.Step, mint, maxt int64, fields []rollup.Field) (*Scan, error) {
	s := &Scan{plan: newPlan(res, step, mint, maxt), reader: r, ctx: ctx, fields: fields}
	return s, s.locate()
}

// Units is the number of cursors that are useful.
func (s *Scan) Units() int { return len(s.groups) + len(s.computed) + len(s.hists) }

// Progress returns how many units the cursors have read, of all.
func (s *Scan) Progress() (read, all int64) { return s.read.Load(), int64(s.Units()) }

// Counts returns how many rows the cursors have returned: stored ones, and those that they have
// computed.
func (s *Scan) Counts() (stored, computed int64) { return s.stored.Load(), s.fromSamples.Load() }
