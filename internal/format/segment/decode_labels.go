package segment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/format"
	"github.com/prometheus/common/model"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

// labelColumn is the decoded dictionary column of a label.
type labelColumn struct {
	name string
	dict []string
	hash []uint64 // by dictionary entry; 0 for ""
	runs []parquetfile.Run
	ords []uint32 // by dictionary entry: ordinal in the table plus one, or 0 if not known yet
}

// mapLabel is a label in the labels MAP.
type mapLabel struct {
	row int
	series.Label
}

// readColumn reads a leaf if it is the column of a label, and adds its hashes to the rows.
func (d *SeriesDecoder) readColumn(g *parquetfile.GroupReader, leaf int) error {
	l := &g.Layout.Leaves[leaf]
	name, isLabel := strings.CutPrefix(l.Path[0], LabelPrefix)
	if l.Path[0] == ColMetric {
		name, isLabel = model.MetricNameLabel, true
	}
	if !isLabel {
		return nil
	}
	if l.Type != format.ByteArray || len(l.Path) != 1 || l.Nested {
		return fmt.Errorf("%w: column %v is not a label column", ErrFormat, l.Path)
	}
	if err := g.Chunk(leaf, &d.chunk); err != nil {
		return err
	}
	if n := len(d.columns); n < cap(d.columns) {
		d.columns = d.columns[:n+1]
	} else {
		d.columns = append(d.columns, labelColumn{})
	}
	c := &d.columns[len(d.columns)-1]
	if err := d.decodeColumn(c, name); err != nil {
		return fmt.Errorf("column %s: %w", l.Path[0], err)
	}
	d.add(c)
	return nil
}

func (d *SeriesDecoder) decodeColumn(c *labelColumn, name string) (err error) {
	c.name, c.runs = name, c.runs[:0]
	if c.dict, err = d.chunk.Strings(c.dict[:0]); err != nil {
		return err
	}
	c.hash = slices.Grow(c.hash[:0], len(c.dict))
	for _, v := range c.dict {
		c.hash = append(c.hash, d.hashLabel(name, v))
	}
	rows := 0
	return d.chunk.Pages(func(p *parquetfile.DataPage) error {
		if rows += p.Entries; rows > len(d.ids) {
			return fmt.Errorf("%w: %d rows of %d", ErrFormat, rows, len(d.ids))
		}
		return p.Runs(p.Entries, len(c.dict), func(r parquetfile.Run) { c.runs = append(c.runs, r) })
	})
}

// hashLabel returns the keyed hash of a label, or 0 if value is "".
func (d *SeriesDecoder) hashLabel(name, value string) uint64 {
	if value == "" {
		return 0
	}
	d.buf = append(append(append(d.buf[:0], name...), 0xff), value...) // 0xff is in no UTF-8 text
	return xxh3.HashSeed(d.buf, d.table.Seed())
}

// add adds the hashes of a column's labels to the sums of the rows that have the label.
func (d *SeriesDecoder) add(c *labelColumn) {
	row := 0
	for _, r := range c.runs {
		if h := c.hash[r.Index]; c.dict[r.Index] != "" {
			for i := row; i < row+r.N; i++ {
				d.sums[i] += h
				d.counts[i]++
			}
		}
		row += r.N
	}
}

// readMap reads the labels MAP, if the file has one.
func (d *SeriesDecoder) readMap(g *parquetfile.GroupReader) error {
	if g.Layout.Column(parquetfile.MapPath(ColLabels, "key")...) < 0 {
		return nil
	}
	d.lists.begin(g, len(d.ids))
	names, counts, err := appendLists(&d.lists, nil, nil, parquetfile.MapPath(ColLabels, "key"), blobLists)
	if err != nil {
		return err
	}
	values, valueCounts, err := appendLists(&d.lists, nil, nil, parquetfile.MapPath(ColLabels, "value"), blobLists)
	if err != nil {
		return err
	}
	if !slices.Equal(counts, valueCounts) {
		return fmt.Errorf("%w: keys and values of the labels MAP are not aligned", ErrFormat)
	}
	at := 0
	for row, n := range counts {
		for ; n > 0; n-- {
			if values[at] != "" {
				d.mapped = append(d.mapped, mapLabel{row, series.Label{Name: names[at], Value: values[at]}})
				d.sums[row] += d.hashLabel(names[at], values[at])
				d.counts[row]++
			}
			at++
		}
	}
	return nil
}
