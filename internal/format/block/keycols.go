package block

import (
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// keyColumns are the columns of a row group that identify the series of each row, as runs, and the
// row group's entry in meta.json.
type keyColumns struct {
	metric parquetfile.Strings
	id     parquetfile.Numbers
	group  RowGroup
}

// owner is the series that rows belong to.
type owner struct {
	view *series.View
	ref  series.Ref
	id   uint64 // in this block
	row  int64  // of the series table
}

// keySchema returns the schema of a file whose rows belong to series: the columns of their
// identity, and others.
func keySchema(name string, others ...format.SchemaElement) *parquetfile.Schema {
	s := parquetfile.NewSchema(name)
	s.Add(parquetfile.String(segment.ColMetric))
	s.Add(parquetfile.Uint64(segment.ColSeriesID))
	s.Add(parquetfile.Timestamp(segment.ColTS))
	for _, c := range others {
		s.Add(c)
	}
	return s
}

func (k *keyColumns) reset() {
	k.metric.Reset()
	k.id.Reset()
	k.id.ShortRuns()
	k.group = RowGroup{}
}

// append adds n rows of o from minT to maxT.
func (k *keyColumns) append(o *owner, n int, minT, maxT int64) {
	ord := o.view.Metric(o.ref)
	metric := o.view.Metrics[ord]
	g := &k.group
	if g.Rows == 0 {
		*g = RowGroup{FirstMetric: metric, FirstSeries: o.row, MinT: minT, MaxT: maxT}
	}
	g.LastMetric, g.LastSeries = metric, o.row
	g.MinT, g.MaxT = min(g.MinT, minT), max(g.MaxT, maxT)
	g.Rows += int64(n)
	k.metric.Append(ord, o.view.Metrics, n)
	k.id.Append(o.id, n)
}

// Where a row group has at least manySeries series with less than shortSeries rows each, their
// identifiers are PLAIN: zstd takes a byte for the rows after the first one, and two for the index
// of a dictionary.
const (
	manySeries  = 4096
	shortSeries = 16
)

// write adds the two columns to the open row group of t.
func (k *keyColumns) write(t *table) {
	t.pq.Add(k.metric.Chunk(segment.ColMetric, &t.s), nil)
	if n := int64(k.id.Distinct()); n >= manySeries && k.group.Rows < n*shortSeries {
		t.pq.Add(k.id.PlainUint64s(segment.ColSeriesID, &t.s), nil)
		return
	}
	t.pq.Add(k.id.Uint64s(segment.ColSeriesID, &t.s), nil)
}
