package segment

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/format"
	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

// SeriesDecoder reads the columns of SeriesColumns, row group by row group, and looks up or interns
// the label sets in a table.
//
// The key of a label set is its series_id and the sum of a hash of (name, value) over its labels.
// The hash is keyed with the table's seed, so that a sender cannot construct two label sets with
// the same sum. Hashes are added, so that the runs of columns can be processed in any order. A
// SeriesDecoder is not safe for concurrent use; its user must hold the table's write lock.
type SeriesDecoder struct {
	table *series.Table
	moved uint64
	keep  func(id uint64) bool
	guess series.Ref
	lists listDecoder
	chunk parquetfile.ChunkReader
	buf   []byte

	columns []labelColumn
	mapped  []mapLabel
	sums    []uint64    // by row
	counts  []uint32    // by row: number of labels
	fresh   []int       // rows that are kept and whose key the table does not know
	of      []rowLabels // by fresh row
	labels  []series.Pair
	refs    []series.Ref
	ids     []uint64
}

// NewSeriesDecoder returns a decoder into t. moved is the largest difference between a stored
// series_id and the hash of its labels: 0 in segments; a block increments identifiers to avoid
// collisions. keep chooses label sets by their series.ID, from a range that is wider than moved;
// nil keeps all.
func NewSeriesDecoder(t *series.Table, moved uint64, keep func(id uint64) bool) *SeriesDecoder {
	return &SeriesDecoder{table: t, moved: moved, keep: keep}
}

// Group returns the label sets of the rows of a row group, series.None for those that are not kept,
// and their stored series_id. Both are valid until the next call. Errors: ErrFormat,
// parquetfile.ErrFormat, series.ErrFull.
func (d *SeriesDecoder) Group(g *parquetfile.GroupReader) ([]series.Ref, []uint64, error) {
	// series_id comes first: it takes eight bytes per row, so no other column can claim more rows
	// than exist.
	column := g.Layout.Column(ColSeriesID)
	if column < 0 || g.Layout.Leaves[column].Type != format.Int64 {
		return nil, nil, fmt.Errorf("%w: no column %s", ErrFormat, ColSeriesID)
	}
	d.ids = d.ids[:0]
	err := g.Pages(column, &d.chunk, func(p *parquetfile.DataPage) (err error) {
		d.ids, err = p.Uint64s(d.ids)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("column %s: %w", ColSeriesID, err)
	}
	d.columns, d.mapped = d.columns[:0], d.mapped[:0]
	d.sums = append(d.sums[:0], make([]uint64, len(d.ids))...)
	d.counts = append(d.counts[:0], make([]uint32, len(d.ids))...)
	for leaf := range g.Layout.Leaves {
		if err := d.readColumn(g, leaf); err != nil {
			return nil, nil, err
		}
	}
	if err := d.readMap(g); err != nil {
		return nil, nil, err
	}
	// Look up the label sets to keep, and collect the rows whose label set the table does not have.
	d.refs = append(d.refs[:0], make([]series.Ref, len(d.ids))...)
	d.fresh = d.fresh[:0]
	for row := range d.refs {
		if !d.kept(d.ids[row]) {
			d.refs[row] = series.None
			continue
		}
		ref, ok := d.table.LookupNear(d.key(row), d.guess)
		if !ok {
			d.fresh = append(d.fresh, row)
			continue
		}
		d.refs[row], d.guess = ref, ref+1
	}
	if err := d.internFresh(); err != nil {
		return nil, nil, err
	}
	d.dropOthers()
	return d.refs, d.ids, nil
}

func (d *SeriesDecoder) key(row int) series.Key {
	return series.Key{Hi: d.ids[row], Lo: bits.RotateLeft64(d.sums[row], 32)}
}

// kept reports whether a label set with a stored series_id may be one to keep. Identifiers to keep
// are a range, so it is not if neither the least nor the largest possible hash is.
func (d *SeriesDecoder) kept(id uint64) bool {
	return d.keep == nil || d.keep(id) || d.moved > 0 && d.keep(id-d.moved)
}

// dropOthers sets the references of label sets to None that only the difference of their stored
// series_id made candidates.
func (d *SeriesDecoder) dropOthers() {
	if d.keep == nil || d.moved == 0 {
		return
	}
	view := d.table.View()
	for row, ref := range d.refs {
		if ref != series.None && !d.keep(view.ID(ref)) {
			d.refs[row] = series.None
		}
	}
}

// internFresh interns the label sets of the fresh rows.
func (d *SeriesDecoder) internFresh() error {
	if len(d.fresh) == 0 {
		return nil
	}
	if err := d.freshLabels(); err != nil {
		return err
	}
	for i, row := range d.fresh {
		l := &d.of[i]
		ref, err := d.intern(row, l.metric, d.labels[l.from:l.end])
		if err != nil {
			return fmt.Errorf("intern series: %w", err)
		}
		d.refs[row], d.guess = ref, ref+1
	}
	view := d.table.View()
	for _, row := range d.fresh {
		if got, want := view.ID(d.refs[row]), d.ids[row]; want-got > d.moved {
			return fmt.Errorf("%w: series_id %d of a label set with series_id %d", ErrFormat, want, got)
		}
		if d.moved > 0 {
			d.table.Alias(d.key(row), d.refs[row])
		}
	}
	return nil
}

// intern interns the label set of a row, whose key the table does not know. The key is a function
// of the label set unless identifiers are moved. A row that occurs twice is added twice, which the
// order of the rows shows.
func (d *SeriesDecoder) intern(row int, metric uint32, pairs []series.Pair) (series.Ref, error) {
	if d.moved == 0 {
		return d.table.AddPairs(d.key(row), metric, pairs)
	}
	return d.table.InternPairs(metric, pairs)
}

// rowLabels are the labels of a row: the ordinal of its metric, and where its other labels are.
type rowLabels struct {
	metric    uint32
	from, end int
}

// freshLabels makes the ordinals of the labels of the fresh rows, each row's in the order of names.
func (d *SeriesDecoder) freshLabels() error {
	at := make([]int32, len(d.ids)) // by row: index of the fresh row plus one, or 0
	d.of = d.of[:0]
	total := 0
	noName := d.table.MetricOrd("")
	for i, row := range d.fresh {
		at[row] = int32(i + 1)
		d.of = append(d.of, rowLabels{noName, total, total})
		total += int(d.counts[row])
	}
	d.labels = append(d.labels[:0], make([]series.Pair, total)...)
	for i := range d.columns {
		d.freshColumn(&d.columns[i], at)
	}
	for _, m := range d.mapped {
		if m.Name == model.MetricNameLabel {
			return fmt.Errorf("%w: label %q is in the labels MAP", ErrFormat, m.Name)
		}
		if f := at[m.row]; f > 0 {
			l, name := &d.of[f-1], d.table.NameOrd(m.Name)
			d.labels[l.end] = series.Pair{Name: name, Value: d.table.ValueOrd(name, m.Value)}
			l.end++
		}
	}
	// Sort the labels of each fresh row by name: those of the MAP follow the columns.
	if len(d.mapped) == 0 && d.inOrder() {
		return nil
	}
	metrics := 0
	for i := range d.columns {
		if d.columns[i].name == model.MetricNameLabel {
			metrics++
		}
	}
	if metrics > 1 {
		return fmt.Errorf("%w: %d columns %s", ErrFormat, metrics, ColMetric)
	}
	names := d.table.View().Names
	byName := func(a, b series.Pair) int { return strings.Compare(names[a.Name], names[b.Name]) }
	for i := range d.of {
		pairs := d.labels[d.of[i].from:d.of[i].end]
		if !slices.IsSortedFunc(pairs, byName) {
			slices.SortFunc(pairs, byName)
		}
		for j := 1; j < len(pairs); j++ {
			if pairs[j].Name == pairs[j-1].Name {
				return fmt.Errorf("%w: label %q occurs twice in a row", ErrFormat, names[pairs[j].Name])
			}
		}
	}
	return nil
}

// freshColumn adds the labels of a column to the fresh rows. at has their indices plus one, by row.
func (d *SeriesDecoder) freshColumn(c *labelColumn, at []int32) {
	c.ords = append(c.ords[:0], make([]uint32, len(c.dict))...)
	metric := c.name == model.MetricNameLabel
	var name uint32
	if !metric {
		name = d.table.NameOrd(c.name)
	}
	row := 0
	for _, r := range c.runs {
		first := row
		row += r.N
		v := c.dict[r.Index]
		if v == "" {
			continue
		}
		for _, f := range at[first:row] {
			if f == 0 {
				continue
			}
			if c.ords[r.Index] == 0 { // the first fresh row with this value
				if metric {
					c.ords[r.Index] = d.table.MetricOrd(v) + 1
				} else {
					c.ords[r.Index] = d.table.ValueOrd(name, v) + 1
				}
			}
			if l := &d.of[f-1]; metric {
				l.metric = c.ords[r.Index] - 1
			} else {
				d.labels[l.end] = series.Pair{Name: name, Value: c.ords[r.Index] - 1}
				l.end++
			}
		}
	}
}

// inOrder reports whether the columns are metric and then labels sorted by name, each once.
func (d *SeriesDecoder) inOrder() bool {
	if len(d.columns) == 0 || d.columns[0].name != model.MetricNameLabel {
		return false
	}
	for i := 1; i < len(d.columns); i++ {
		if name := d.columns[i].name; name == model.MetricNameLabel || i > 1 && d.columns[i-1].name >= name {
			return false
		}
	}
	return true
}

var errOrder = errors.New("series are not in order or not unique")

// CheckOrder checks that the kept rows are strictly ascending.
func (d *SeriesDecoder) CheckOrder(rows []series.Ref, compare func(v *series.View, a, b series.Ref) int) error {
	v := d.table.View()
	last := series.None
	for _, r := range rows {
		if r == series.None {
			continue
		}
		if last != series.None && compare(&v, last, r) >= 0 {
			return fmt.Errorf("%w: %w", ErrFormat, errOrder)
		}
		last = r
	}
	return nil
}
