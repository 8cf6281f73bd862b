package segment

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
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

// LabelRuns says which label columns have values in which rows of a segment: in runs of rows of
// whole metrics, the first rows first. The series of a metric have few of the labels of a segment,
// so that a reader of a few rows need not read the columns of all others. It is nil if nothing is
// known.
type LabelRuns []LabelRun

// LabelRun is a number of rows and the columns that have a value in one of them, by their positions
// in Info.LabelColumns.
type LabelRun struct {
	Rows    int
	Columns labelSet
}

// labelSet is a set of label columns: bit i%64 of word i/64 is column i.
type labelSet [MaxLabelColumns / 64]uint64

func (s *labelSet) add(column int) { s[column/64] |= 1 << (column % 64) }

// Has reports whether a column is in the set.
func (s *labelSet) Has(column int) bool { return s[column/64]&(1<<(column%64)) != 0 }

const (
	// minLabelRuns is the number of rows from which a segment has LabelRuns: smaller ones are read as
	// a whole.
	minLabelRuns = 4096
	// maxLabelRuns is the number of runs beyond which a segment has none.
	maxLabelRuns = 1024
)

// labelRuns returns the runs of the planned rows, of which there are n; nil if they are too few, or
// the runs too many.
func (c *SeriesColumns) labelRuns(n int) (runs LabelRuns) {
	if n < minLabelRuns {
		return nil
	}
	column := make([]int, len(c.kind)) // by name ordinal
	for i, o := range c.ord {
		column[o] = i
	}
	for i, m := range c.metrics {
		next := metricRows{n, len(c.has)}
		if i+1 < len(c.metrics) {
			next = c.metrics[i+1]
		}
		run := LabelRun{Rows: next.row - m.row}
		for _, o := range c.has[m.names:next.names] {
			if c.kind[o] == inColumn {
				run.Columns.add(column[o])
			}
		}
		if k := len(runs); k > 0 && runs[k-1].Columns == run.Columns {
			runs[k-1].Rows += run.Rows
			continue
		}
		if len(runs) == maxLabelRuns {
			return nil
		}
		runs = append(runs, run)
	}
	return runs
}

// text returns the runs as the footer of a file of so many label columns has them.
func (r LabelRuns) text(columns int) string {
	var sets []labelSet
	known := map[labelSet]int{}
	for _, run := range r {
		if _, ok := known[run.Columns]; !ok {
			known[run.Columns] = len(sets)
			sets = append(sets, run.Columns)
		}
	}
	b := binary.AppendUvarint(nil, uint64(len(sets)))
	for _, s := range sets {
		for i := 0; i < columns; i += 8 {
			b = append(b, byte(s[i/64]>>(i%64)))
		}
	}
	for _, run := range r {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(run.Rows)), uint64(known[run.Columns]))
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

// RunsOf returns the LabelRuns of a segment, by the key-value metadata in its footer, of so many
// label columns and rows.
func RunsOf(kv map[string]string, columns int, rows int64) (LabelRuns, error) {
	text, ok := kv[kvLabels]
	if !ok || columns > MaxLabelColumns {
		return nil, nil
	}
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: decode runs of labels: %w", ErrFormat, err)
	}
	number := func() uint64 { // more than any number if there is none
		n, k := binary.Uvarint(b)
		if k <= 0 {
			return math.MaxUint64
		}
		b = b[k:]
		return n
	}
	size := (columns + 7) / 8
	n := number()
	if size == 0 && n > 1 || size > 0 && n > uint64(len(b)/size) {
		return nil, fmt.Errorf("%w: %d sets of labels in %d bytes", ErrFormat, n, len(b))
	}
	sets := make([]labelSet, n)
	for i := range sets {
		for j, x := range b[:size] {
			sets[i][j/8] |= uint64(x) << (j % 8 * 8)
		}
		b = b[size:]
	}
	left := uint64(rows)
	const least = 2 // bytes of a run
	runs := make(LabelRuns, 0, min(len(b)/least, maxLabelRuns))
	for len(b) > 0 {
		of, set := number(), number()
		if of == 0 || of > left || set >= n {
			return nil, fmt.Errorf("%w: a run of %d of %d rows has the labels of set %d of %d", ErrFormat, of, left, set, n)
		}
		left -= of
		runs = append(runs, LabelRun{int(of), sets[set]})
	}
	if left > 0 {
		return nil, fmt.Errorf("%w: %d rows after the runs of labels", ErrFormat, left)
	}
	return runs, nil
}

// Columns returns the columns that have a value in one of some rows, which ascend.
func (r LabelRuns) Columns(rows []uint32) (s labelSet) {
	end := uint32(0)
	for _, run := range r {
		end += uint32(run.Rows)
		n, _ := slices.BinarySearch(rows, end)
		if n > 0 {
			for i := range s {
				s[i] |= run.Columns[i]
			}
		}
		rows = rows[n:]
	}
	return s
}
