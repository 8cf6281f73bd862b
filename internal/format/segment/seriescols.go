package segment

import (
	"slices"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

// SeriesColumns writes the columns that identify the series of a file, in segments and in the
// series tables of blocks: metric, series_id, a column per label name, and the labels MAP. It
// reuses its buffers for later files and is not safe for concurrent use.
type SeriesColumns struct {
	Names    []string // label names of the planned file that have a column, sorted
	MapNames []string // label names in the labels MAP, sorted

	metric  parquetfile.Strings
	columns []parquetfile.Strings // by name ordinal of the view
	kind    []labelKind           // by name ordinal of the view
	ord     []uint32              // by column: name ordinal
	ids     []uint64
	counts  []int
	lists   parquetfile.Lists

	seen    []uint32     // by name ordinal of the view: the number of the metric whose series had it last
	metrics []metricRows // of the planned file
	has     []uint32     // name ordinals of their labels
	warm    uint32       // of View.Warm

	table  *tableColumns
	pieces []piece  // of the planned file
	ranks  []uint32 // by row; those of label sets that the table's columns do not have are not set
	row    int      // of the planned file: the first one that is not written
	piece  int      // which has this row
}

// warmed is the number of rows whose label sets are read at once.
const warmed = 64

// piece is adjacent rows of a planned file whose label sets are of one metric and in the columns of
// the table, or are all not in them.
type piece struct {
	from, to int
	metric   int // index in tableColumns.metrics; -1: they are not in the columns
}

// metricRows is the rows of a metric in a file: the first one, and where the names of its labels
// begin in SeriesColumns.has. The next metric begins where they end.
type metricRows struct{ row, names int }

// labelKind is where the labels of a name are stored.
type labelKind uint8

const (
	unused labelKind = iota
	inColumn
	inLabelsMap
)

// Plan collects the label names of the rows of a file and decides which have a column.
func (c *SeriesColumns) Plan(v *series.View, rows []series.Ref) { c.plan(v, rows, nil) }

// plan is Plan for rows of which t has most. It returns the number of those that it does not have.
func (c *SeriesColumns) plan(v *series.View, rows []series.Ref, t *tableColumns) (unknown int) {
	c.kind = append(c.kind[:0], make([]labelKind, len(v.Names))...)
	c.seen = append(c.seen[:0], make([]uint32, len(v.Names))...)
	c.metrics, c.has = c.metrics[:0], c.has[:0]
	unknown = c.divide(rows, t)
	c.ord = c.ord[:0]
	last := uint32(0) // metric
	begin := func(row int, metric uint32) {
		if len(c.metrics) == 0 || metric != last {
			c.metrics = append(c.metrics, metricRows{row, len(c.has)})
			last = metric
		}
	}
	for _, p := range c.pieces {
		if p.metric >= 0 {
			m := &t.metrics[p.metric]
			begin(p.from, m.metric)
			for i := range m.labels {
				if l := &m.labels[i]; c.seen[l.name] != uint32(len(c.metrics)) && l.inSome(c.ranks[p.from:p.to], m.first) {
					c.see(l.name)
				}
			}
			continue
		}
		for i := p.from; i < p.to; i++ {
			c.warmRows(v, rows[:p.to], i-p.from, i)
			r := rows[i]
			begin(i, v.Metric(r))
			for _, l := range v.Pairs(r) {
				if c.seen[l.Name] != uint32(len(c.metrics)) {
					c.see(l.Name)
				}
			}
		}
	}
	c.choose(v)
	return unknown
}

// see notes that the last metric has a label.
func (c *SeriesColumns) see(name uint32) {
	c.seen[name] = uint32(len(c.metrics))
	c.has = append(c.has, name)
	if c.kind[name] == unused {
		c.kind[name] = inLabelsMap
		c.ord = append(c.ord, name)
	}
}

// choose decides which of the labels that were seen have a column.
func (c *SeriesColumns) choose(v *series.View) {
	names := make([]string, len(c.ord))
	byName := make(map[string]uint32, len(c.ord))
	for i, o := range c.ord {
		names[i] = v.Names[o]
		byName[v.Names[o]] = o
	}
	c.Names, c.MapNames = split(names)
	c.ord = c.ord[:0]
	for _, n := range c.Names {
		c.ord = append(c.ord, byName[n])
		c.kind[byName[n]] = inColumn
	}
	if n := len(v.Names) - len(c.columns); n > 0 {
		c.columns = append(c.columns, make([]parquetfile.Strings, n)...)
	}
}

// warmRows reads the memory of the next label sets, before that of the n-th of some rows.
func (c *SeriesColumns) warmRows(v *series.View, rows []series.Ref, n, at int) {
	if n%warmed == 0 {
		c.warm += v.Warm(rows[at:min(at+warmed, len(rows))])
	}
}

// Schema adds the planned columns to the schema of a file.
func (c *SeriesColumns) Schema(s *parquetfile.Schema) {
	s.Add(parquetfile.String(ColMetric))
	s.Add(parquetfile.Uint64(ColSeriesID))
	for _, n := range c.Names {
		s.Add(parquetfile.String(LabelPrefix + n))
	}
	if len(c.MapNames) > 0 {
		s.Add(parquetfile.Map(ColLabels)...)
	}
}

// Chunks is the number of column chunks that Write adds.
func (c *SeriesColumns) Chunks() int {
	n := 2 + len(c.Names)
	if len(c.MapNames) > 0 {
		n += 2
	}
	return n
}

// Write adds the columns of the next row group: the planned rows that follow those of the group
// before. ids are their series_id; nil means those of v.
func (c *SeriesColumns) Write(f *parquetfile.Writer, s *parquetfile.Scratch, v *series.View, rows []series.Ref, ids []uint64) {
	c.metric.Reset()
	for _, o := range c.ord {
		c.columns[o].Reset()
	}
	c.ids = append(c.ids[:0], ids...)
	begin, end := c.row, c.row+len(rows)
	for c.row < end {
		p := c.pieces[c.piece]
		to := min(p.to, end)
		if p.metric >= 0 {
			c.appendKnown(v, c.row-begin, c.ranks[c.row:to], &c.table.metrics[p.metric], ids == nil)
		} else {
			c.appendRows(v, c.row-begin, rows[c.row-begin:to-begin], ids == nil)
		}
		if c.row = to; to == p.to {
			c.piece++
		}
	}
	f.Add(c.metric.Chunk(ColMetric, s), nil)
	f.Add(parquetfile.Uint64s(ColSeriesID, s, c.ids), nil)
	for i, o := range c.ord {
		col := &c.columns[o]
		col.Fill(len(rows))
		f.Add(col.Chunk(LabelPrefix+c.Names[i], s), nil)
	}
	if len(c.MapNames) > 0 {
		c.writeMap(f, s, v, rows)
	}
}

// appendRows adds label sets to the columns, from a row of the group on.
func (c *SeriesColumns) appendRows(v *series.View, row int, rows []series.Ref, ids bool) {
	for i, r := range rows {
		c.warmRows(v, rows, i, i)
		c.metric.Set(row+i, v.Metric(r), v.Metrics)
		if ids {
			c.ids = append(c.ids, v.ID(r))
		}
		for _, p := range v.Pairs(r) {
			if c.kind[p.Name] == inColumn {
				c.columns[p.Name].Set(row+i, p.Value, v.Values[p.Name])
			}
		}
	}
}

// writeMap adds the labels MAP.
func (c *SeriesColumns) writeMap(f *parquetfile.Writer, s *parquetfile.Scratch, v *series.View, rows []series.Ref) {
	var names, values [][]byte
	counts := c.counts[:0]
	for _, r := range rows {
		n := 0
		for _, p := range v.Pairs(r) {
			if c.kind[p.Name] == inLabelsMap {
				names, values = append(names, []byte(v.Names[p.Name])), append(values, []byte(v.Values[p.Name][p.Value]))
				n++
			}
		}
		counts = append(counts, n)
	}
	c.counts = counts
	c.lists.Build(s, counts)
	f.Add(c.lists.Binaries(parquetfile.MapPath(ColLabels, "key"), s, names), nil)
	f.Add(c.lists.Binaries(parquetfile.MapPath(ColLabels, "value"), s, values), nil)
}

// split sorts label names and separates those with a column from those in the MAP.
func split(names []string) (columns, inMap []string) {
	slices.Sort(names)
	for _, n := range names {
		if HasColumn(n) && len(columns) < MaxLabelColumns {
			columns = append(columns, n)
		} else {
			inMap = append(inMap, n)
		}
	}
	return columns, inMap
}
