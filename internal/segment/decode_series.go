package segment

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/series"
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
	guess series.Ref
	lists listDecoder
	chunk parquetfile.ChunkReader
	buf   []byte

	columns []labelColumn
	mapped  []mapLabel
	sums    []uint64 // by row
	counts  []uint32 // by row: number of labels
	fresh   []int    // rows whose key the table does not know
	refs    []series.Ref
	ids     []uint64
}

// NewSeriesDecoder returns a decoder into t. moved is the largest difference between a stored
// series_id and the hash of its labels: 0 in segments; a block increments identifiers to avoid
// collisions.
func NewSeriesDecoder(t *series.Table, moved uint64) *SeriesDecoder {
	return &SeriesDecoder{table: t, moved: moved}
}

// Group returns the label sets of the rows of a row group and their stored series_id. Both are
// valid until the next call. Errors: ErrFormat, parquetfile.ErrFormat, series.ErrFull.
func (d *SeriesDecoder) Group(g *parquetfile.GroupReader) ([]series.Ref, []uint64, error) {
	if err := d.readIDs(g); err != nil {
		return nil, nil, err
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
	d.lookUp()
	if err := d.internFresh(); err != nil {
		return nil, nil, err
	}
	return d.refs, d.ids, nil
}

// readIDs reads series_id first: it takes eight bytes per row, so no other column can claim more
// rows than exist.
func (d *SeriesDecoder) readIDs(g *parquetfile.GroupReader) error {
	leaf := g.Layout.Column(ColSeriesID)
	if leaf < 0 || g.Layout.Leaves[leaf].Type != format.Int64 {
		return fmt.Errorf("%w: no column %s", ErrFormat, ColSeriesID)
	}
	d.ids = d.ids[:0]
	err := g.Pages(leaf, &d.chunk, func(p *parquetfile.DataPage) (err error) {
		d.ids, err = p.Uint64s(d.ids)
		return err
	})
	if err != nil {
		return fmt.Errorf("column %s: %w", ColSeriesID, err)
	}
	return nil
}

func (d *SeriesDecoder) key(row int) series.Key {
	return series.Key{Hi: d.ids[row], Lo: bits.RotateLeft64(d.sums[row], 32)}
}

// lookUp looks up the label sets in the table and collects the rows whose label set it does not
// have.
func (d *SeriesDecoder) lookUp() {
	d.refs = append(d.refs[:0], make([]series.Ref, len(d.ids))...)
	d.fresh = d.fresh[:0]
	for row := range d.refs {
		ref, ok := d.table.LookupNear(d.key(row), d.guess)
		if !ok {
			d.fresh = append(d.fresh, row)
			continue
		}
		d.refs[row], d.guess = ref, ref+1
	}
}

// internFresh interns the label sets of the fresh rows.
func (d *SeriesDecoder) internFresh() error {
	if len(d.fresh) == 0 {
		return nil
	}
	lsets, end := d.freshLabels()
	from := 0
	for i, row := range d.fresh {
		lset := lsets[from:end[i]]
		from = end[i]
		if err := sortLabels(lset); err != nil {
			return err
		}
		ref, err := d.table.Intern(lset)
		if err != nil {
			return fmt.Errorf("intern series: %w", err)
		}
		d.refs[row] = ref
	}
	d.guess = d.refs[len(d.refs)-1] + 1
	view := d.table.View()
	for _, row := range d.fresh {
		if got, want := view.ID(d.refs[row]), d.ids[row]; want-got > d.moved {
			return fmt.Errorf("%w: series_id %d of a label set with series_id %d", ErrFormat, want, got)
		}
		d.table.Alias(d.key(row), d.refs[row])
	}
	return nil
}

// sortLabels sorts labels by name: metric is the first column, and labels of the MAP follow the
// columns.
func sortLabels(lset []series.Label) error {
	byName := func(a, b series.Label) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(lset, byName) {
		slices.SortFunc(lset, byName)
	}
	for i := 1; i < len(lset); i++ {
		if lset[i].Name == lset[i-1].Name {
			return fmt.Errorf("%w: label %q occurs twice in a row", ErrFormat, lset[i].Name)
		}
	}
	return nil
}

// freshLabels returns the labels of the fresh rows, in the order of the columns, and the end of
// each row's labels.
func (d *SeriesDecoder) freshLabels() (lsets []series.Label, end []int) {
	place := make([]int, len(d.ids)) // by row: index of its next label, or -1
	for row := range place {
		place[row] = -1
	}
	total := 0
	end = make([]int, len(d.fresh))
	for i, row := range d.fresh {
		place[row] = total
		total += int(d.counts[row])
		end[i] = total
	}
	lsets = make([]series.Label, total)
	put := func(row int, name, value string) {
		if at := place[row]; at >= 0 {
			lsets[at] = series.Label{Name: name, Value: value}
			place[row]++
		}
	}
	for i := range d.columns {
		c := &d.columns[i]
		row := 0
		for _, r := range c.runs {
			if v := c.dict[r.Index]; v != "" {
				for j := row; j < row+r.N; j++ {
					put(j, c.name, v)
				}
			}
			row += r.N
		}
	}
	for _, m := range d.mapped {
		put(m.row, m.Name, m.Value)
	}
	return lsets, end
}

var errOrder = errors.New("series are not in order or not unique")

// CheckOrder checks that rows are strictly ascending.
func (d *SeriesDecoder) CheckOrder(rows []series.Ref, compare func(v *series.View, a, b series.Ref) int) error {
	v := d.table.View()
	for i := 1; i < len(rows); i++ {
		if compare(&v, rows[i-1], rows[i]) >= 0 {
			return fmt.Errorf("%w: %w", ErrFormat, errOrder)
		}
	}
	return nil
}
