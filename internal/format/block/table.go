package block

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
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
