package views

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/metadata"

	"github.com/promlake/promlake/internal/query/duck/table"
)

// Blocks is a table with a row for each live block.
type Blocks struct{ Reader Reader }

var blockColumns = []table.Column{
	{Name: "level", Type: table.Varchar}, {Name: "id", Type: table.Varchar}, {Name: "window_start", Type: table.Timestamp}, {Name: "window_end", Type: table.Timestamp},
	{Name: "min_ts", Type: table.Timestamp}, {Name: "max_ts", Type: table.Timestamp},
	{Name: "series", Type: table.BigInt}, {Name: "samples", Type: table.BigInt}, {Name: "bytes", Type: table.BigInt},
}

// Columns implements table.Table.
func (*Blocks) Columns() []table.Column { return blockColumns }

// Rows implements table.Table.
func (*Blocks) Rows() int64 { return 100 }

// Open implements table.Table.
func (t *Blocks) Open([]int) (table.Scan, error) {
	_, r, err := t.Reader.Read()
	if err != nil {
		return nil, t.Reader.Fail(err)
	}
	blocks := r.Snap.Blocks
	return &list{n: len(blocks), put: func(c *table.Chunk, row int) {
		b := &blocks[row]
		c.Texts(0).Add(b.Level.String())
		c.Texts(1).Add(b.ID.String())
		putNumbers(c, 2, int64(b.Window)*1000, b.Level.End(b.Window)*1000, b.MinT*1000, b.MaxT*1000, b.Series, b.Samples, b.Bytes)
	}}, nil
}

// Segments is a table with a row for each live segment.
type Segments struct{ Reader Reader }

var segmentColumns = []table.Column{
	{Name: "id", Type: table.Varchar}, {Name: "window_start", Type: table.Timestamp}, {Name: "window_end", Type: table.Timestamp},
	{Name: "received", Type: table.Timestamp}, {Name: "bytes", Type: table.BigInt},
}

// Columns implements table.Table.
func (*Segments) Columns() []table.Column { return segmentColumns }

// Rows implements table.Table.
func (*Segments) Rows() int64 { return 1000 }

// Open implements table.Table.
func (t *Segments) Open([]int) (table.Scan, error) {
	_, r, err := t.Reader.Read()
	if err != nil {
		return nil, t.Reader.Fail(err)
	}
	segments := r.Snap.Segments
	return &list{n: len(segments), put: func(c *table.Chunk, row int) {
		s := &segments[row]
		c.Texts(0).Add(s.ID.String())
		putNumbers(c, 1, int64(s.Window)*1000, s.Window.End()*1000, int64(s.Rank.Time())*1000, s.Size)
	}}, nil
}

// putNumbers writes the numbers of a row from a column on.
func putNumbers(c *table.Chunk, column int, numbers ...int64) {
	for i, n := range numbers {
		if out := c.Numbers(column + i); out != nil {
			out[c.Rows] = n
		}
	}
}

// Metadata is a table with a row for each description of a metric family that was sent recently.
type Metadata struct {
	Reader Reader
	Get    func(context.Context) (map[string][]metadata.Metadata, error)
}

var metadataColumns = []table.Column{
	{Name: metricColumn, Type: table.Varchar}, {Name: "type", Type: table.Varchar}, {Name: "unit", Type: table.Varchar}, {Name: "help", Type: table.Varchar},
}

// Columns implements table.Table.
func (*Metadata) Columns() []table.Column { return metadataColumns }

// Rows implements table.Table.
func (*Metadata) Rows() int64 { return 1000 }

// Open implements table.Table.
func (t *Metadata) Open([]int) (table.Scan, error) {
	ctx, _, err := t.Reader.Read()
	var found map[string][]metadata.Metadata
	if err == nil {
		found, err = t.Get(ctx)
	}
	if err != nil {
		return nil, t.Reader.Fail(err)
	}
	var rows [][4]string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for _, m := range found[name] {
			rows = append(rows, [4]string{name, string(m.Type), m.Unit, m.Help})
		}
	}
	return &list{n: len(rows), put: func(c *table.Chunk, row int) {
		for i, text := range rows[row] {
			c.Texts(i).Add(text)
		}
	}}, nil
}
