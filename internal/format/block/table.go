package block

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

const createdBy = "promlake block version 2"

// outBuffer is how many bytes of a file are collected before they are written.
const outBuffer = 256 << 10

// table writes the files that hold the rows of one kind, row group by row group, and begins a new
// file when one is full.
type table struct {
	files  Files
	name   func(n int) string
	schema []format.SchemaElement
	limit  int64 // bytes of a file

	pq   *parquetfile.Writer
	s    parquetfile.Scratch
	out  io.WriteCloser // the open file; nil = none
	buf  *bufio.Writer
	file File

	rows int64  // of all closed row groups
	done []File // closed files
}

func newTable(files Files, z *zstd.Encoder, name func(int) string, limit int64, schema *parquetfile.Schema) *table {
	return &table{files: files, name: name, schema: schema.Elements(), limit: limit, pq: parquetfile.NewWriter(z)}
}

// begin opens a file if none is open: the chunks of a row group go to pq.
func (t *table) begin() error {
	if t.out != nil {
		return nil
	}
	name := t.name(len(t.done))
	out, err := t.files.Create(name)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	if t.buf == nil {
		t.buf = bufio.NewWriterSize(nil, outBuffer)
	}
	t.buf.Reset(out)
	t.out, t.file = out, File{Name: name}
	if err := t.pq.Begin(t.buf, t.schema, createdBy, 0); err != nil {
		return fmt.Errorf("begin %s: %w", name, err)
	}
	return nil
}

// endGroup closes the row group that g describes, and the file if another such row group may not
// fit. Its error may be that of a chunk.
func (t *table) endGroup(g RowGroup) error {
	first := t.pq.Size()
	spans, err := t.pq.EndGroup(int(g.Rows))
	if err != nil {
		return fmt.Errorf("write %s: %w", t.file.Name, err)
	}
	g.FirstRow = t.rows
	for _, s := range spans {
		first = min(first, s.Offset)
		g.Columns = append(g.Columns, Chunk{s.Offset, s.Length})
	}
	t.rows += g.Rows
	t.file.Rows += g.Rows
	t.file.RowGroups = append(t.file.RowGroups, g)
	if size := t.pq.Size(); size+(size-first) > t.limit {
		return t.end()
	}
	return nil
}

// end closes the open file, if any.
func (t *table) end() error {
	if t.out == nil {
		return nil
	}
	err := t.pq.End([]format.KeyValue{{Key: KeyVersion, Value: strconv.Itoa(FormatVersion)}})
	if err == nil {
		err = t.buf.Flush()
	}
	if err == nil {
		err = t.out.Close()
	}
	if err != nil {
		return fmt.Errorf("close %s: %w", t.file.Name, err)
	}
	t.out = nil
	t.file.Bytes = t.pq.Size()
	t.done = append(t.done, t.file)
	return nil
}

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
