package views

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
)

var blockColumns = []table.Column{
	{Name: "level", Type: table.Varchar}, {Name: "id", Type: table.Varchar}, {Name: "window_start", Type: table.Timestamp}, {Name: "window_end", Type: table.Timestamp},
	{Name: "min_ts", Type: table.Timestamp}, {Name: "max_ts", Type: table.Timestamp},
	{Name: "series", Type: table.BigInt}, {Name: "samples", Type: table.BigInt}, {Name: "bytes", Type: table.BigInt},
}

// Blocks returns the table with a row for each live block.
func Blocks(r Reader) table.Table {
	return &listed{r, blockColumns, 100, func(_ context.Context, r Read) (*list, error) {
		blocks := r.Snap.Blocks
		return &list{n: len(blocks), put: func(c *table.Chunk, row int) {
			b := &blocks[row]
			c.Texts(0).Add(b.Level.String())
			c.Texts(1).Add(b.ID.String())
			putNumbers(c, 2, int64(b.Window)*1000, b.Level.End(b.Window)*1000, b.MinT*1000, b.MaxT*1000, b.Series, b.Samples, b.Bytes)
		}}, nil
	}}
}

var segmentColumns = []table.Column{
	{Name: "id", Type: table.Varchar}, {Name: "window_start", Type: table.Timestamp}, {Name: "window_end", Type: table.Timestamp},
	{Name: "received", Type: table.Timestamp}, {Name: "bytes", Type: table.BigInt},
}

// Segments returns the table with a row for each live segment.
func Segments(r Reader) table.Table {
	return &listed{r, segmentColumns, 1000, func(_ context.Context, r Read) (*list, error) {
		segments := r.Snap.Segments
		return &list{n: len(segments), put: func(c *table.Chunk, row int) {
			s := &segments[row]
			c.Texts(0).Add(s.ID.String())
			putNumbers(c, 1, int64(s.Window)*1000, s.Window.End()*1000, int64(s.Rank.Time())*1000, s.Size)
		}}, nil
	}}
}

// putNumbers writes the numbers of a row from a column on.
func putNumbers(c *table.Chunk, column int, numbers ...int64) {
	for i, n := range numbers {
		if out := c.Numbers(column + i); out != nil {
			out[c.Rows] = n
		}
	}
}

var metadataColumns = []table.Column{
	{Name: metricColumn, Type: table.Varchar}, {Name: "type", Type: table.Varchar}, {Name: "unit", Type: table.Varchar}, {Name: "help", Type: table.Varchar},
}

// Metadata returns the table with a row for each description of a metric family that was sent
// recently.
func Metadata(r Reader, get func(context.Context) (map[string][]metadata.Metadata, error)) table.Table {
	return &listed{r, metadataColumns, 1000, func(ctx context.Context, _ Read) (*list, error) {
		found, err := get(ctx)
		if err != nil {
			return nil, err
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
	}}
}

var seriesColumns = []table.Column{{Name: metricColumn, Type: table.Varchar}, {Name: labelsColumn, Type: table.Map}}

// Series returns the table series: the label sets that /api/v1/series returns without a time range.
func Series(store *Store, r Reader) table.Table {
	return &listed{r, seriesColumns, 10_000, func(ctx context.Context, r Read) (*list, error) {
		read, sets := store.Series.Series, store.shown(ctx, r)
		if r.Stored {
			read, sets = store.Series.Tables.Series, r.Sets
		}
		var ms []*labels.Matcher
		if len(sets) == 1 { // others are left to DuckDB
			ms = sets[0]
		}
		found, err := read(ctx, r.Snap, r.MinT, r.MaxT, ms)
		if err == nil {
			err = request.Found(ctx, found, lookup.LabelsOf)
		}
		if err != nil {
			return nil, err
		}
		return &list{n: len(found), put: func(c *table.Chunk, row int) {
			putMetric(c.Texts(0), found[row].Labels)
			putLabels(c.Texts(1), found[row].Labels)
		}}, nil
	}}
}
