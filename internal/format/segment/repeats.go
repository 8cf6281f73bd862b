package segment

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

// Repeats keeps the series columns of segments as they were encoded, by the rows of the segment:
// senders that write the same series again and again have the same rows in many segments. It keeps
// them when rows come for the second time. Of a table whose rows come again and again, but never the
// same together, as scrapes do, it keeps the columns of all label sets. All batches that it is used
// for are of one table. One goroutine at a time uses it, apart from Bytes. The zero value keeps
// nothing yet.
type Repeats struct {
	table *tableColumns // nil: none
	read  int           // rows that were written without table since it was made

	writes uint64 // so far
	once   [64]uint64
	kept   map[uint64]*repeat // by hash of the rows
	bytes  atomic.Int64
}

// repeat is the beginning of all segments with some rows.
type repeat struct {
	rows   []series.Ref
	shape  shape
	labels known
	prefix *parquetfile.Prefix
	used   uint64 // the number of the last write
}

// known is what is known of the labels of a segment's rows.
type known struct {
	names, mapNames []string // SeriesColumns.Names and MapNames
	values          Values
	runs            string // LabelRuns.text; "" for none
}

func (r *repeat) bytes() int64 {
	const own, perName = 256, 16
	return own + int64(4*cap(r.rows)+perName*(cap(r.labels.names)+cap(r.labels.mapNames))+cap(r.labels.values)+len(r.labels.runs)) + r.prefix.Bytes()
}

const (
	// repeatsBase and repeatsPerSeries bound the memory (bytes): about as much as the table's.
	repeatsBase      = 2 << 20
	repeatsPerSeries = 96
	// tableReads is how often, on average, a label set was read before the columns of all are made.
	tableReads = 2
	// repeatsIdle is the number of writes after which what was not used makes room.
	repeatsIdle = 256
)

// repeatsLimit is the largest memory (bytes) of a table with so many series.
func repeatsLimit(n int) int64 { return repeatsBase + repeatsPerSeries*int64(n) }

// Bytes is the memory of what is kept. It may be called at any time.
func (r *Repeats) Bytes() int64 { return r.bytes.Load() }

// hashRows is a hash that tells apart the rows and shapes of batches, but not those that somebody
// chooses to be equal: whoever uses it compares them.
func hashRows(rows []series.Ref, s shape) uint64 {
	h := uint64(len(rows))
	for _, is := range [...]bool{s.st, s.hist, s.exemplars} {
		h <<= 1
		if is {
			h++
		}
	}
	for _, r := range rows {
		hi, lo := bits.Mul64(h^uint64(r), 0x9e3779b97f4a7c15)
		h = hi ^ lo
	}
	return h
}

// find returns what is kept of a batch's rows, or nil.
func (r *Repeats) find(hash uint64, b *Batch, s shape) *repeat {
	r.writes++
	k := r.kept[hash]
	if k == nil || k.shape != s || !slices.Equal(k.rows, b.Rows) {
		return nil
	}
	k.used = r.writes
	return k
}

// columns returns the columns of the table, nil if there are none. They are made, or made anew, when
// they have not been there for so many rows that they would have saved more than they cost.
func (r *Repeats) columns(b *Batch) *tableColumns {
	if r == nil {
		return nil
	}
	if n := b.View.Len(); b.Order != nil && r.read >= tableReads*n {
		r.read = 0
		if r.table != nil {
			r.bytes.Add(-r.table.bytes)
		}
		if r.table = newTableColumns(b.View, b.Order, repeatsLimit(n)-r.bytes.Load()); r.table != nil {
			r.bytes.Add(r.table.bytes)
		}
	}
	return r.table
}

// again notes rows that are not kept, and reports whether they came before, not long ago.
func (r *Repeats) again(hash uint64) bool {
	if slices.Contains(r.once[:], hash) {
		return true
	}
	r.once[r.writes%uint64(len(r.once))] = hash
	return false
}

// keep keeps the beginning of segments with the rows of a batch, if there is room.
func (r *Repeats) keep(hash uint64, b *Batch, k *repeat) {
	k.rows, k.used = slices.Clone(b.Rows), r.writes
	limit := repeatsLimit(b.View.Len())
	if old := r.kept[hash]; old != nil { // of other rows
		r.remove(hash, old)
	}
	n := k.bytes()
	for r.bytes.Load()+n > limit {
		at, oldest := uint64(0), (*repeat)(nil)
		for h, k := range r.kept {
			if oldest == nil || k.used < oldest.used {
				at, oldest = h, k
			}
		}
		if oldest == nil || r.writes-oldest.used < repeatsIdle {
			return
		}
		r.remove(at, oldest)
	}
	if r.kept == nil {
		r.kept = map[uint64]*repeat{}
	}
	r.kept[hash] = k
	r.bytes.Add(n)
}

func (r *Repeats) remove(hash uint64, k *repeat) {
	delete(r.kept, hash)
	r.bytes.Add(-k.bytes())
}

// mostUnknown is the inverse of the share of a file's rows that may be missing in the columns of
// the table: where more are, these are not used.
const mostUnknown = 4

// divide divides the rows of a file into pieces, and returns how many of them t does not have.
func (c *SeriesColumns) divide(rows []series.Ref, t *tableColumns) (unknown int) {
	c.table, c.pieces, c.row, c.piece = t, c.pieces[:0], 0, 0
	unknown = len(rows)
	if t.ready() {
		for _, r := range rows {
			if t.known(r) {
				unknown--
			}
		}
	}
	if unknown*mostUnknown > len(rows) {
		c.pieces = append(c.pieces, piece{0, len(rows), -1})
		return unknown
	}
	c.ranks = slices.Grow(c.ranks[:0], len(rows))[:len(rows)]
	metric, later := 0, 0
	for from, to := 0, 0; from < len(rows); from = to {
		if !t.known(rows[from]) {
			for to = from + 1; to < len(rows) && !t.known(rows[to]); {
				to++
			}
			c.pieces = append(c.pieces, piece{from, to, -1})
			continue
		}
		end := uint32(0)
		for to = from; to < len(rows) && t.known(rows[to]); to++ {
			rank := t.order.Rank(rows[to])
			for later < len(t.later) && t.later[later] < rank {
				later++
			}
			rank -= uint32(later)
			if to == from {
				metric = t.find(metric, rank)
				end = t.metrics[metric].end
			} else if rank >= end {
				break
			}
			c.ranks[to] = rank
		}
		c.pieces = append(c.pieces, piece{from, to, metric})
	}
	return unknown
}

// appendKnown adds label sets of a metric, by their ranks, to the columns, from a row of the group
// on.
func (c *SeriesColumns) appendKnown(v *series.View, row int, ranks []uint32, m *metricColumns, ids bool) {
	c.metric.Append(m.metric, v.Metrics, len(ranks))
	if ids {
		for _, r := range ranks {
			c.ids = append(c.ids, c.table.ids[r])
		}
	}
	for i := range m.labels {
		l := &m.labels[i]
		if c.kind[l.name] != inColumn {
			continue
		}
		col, values := &c.columns[l.name], v.Values[l.name]
		switch {
		case l.near != nil:
			parquetfile.Pick(col, row, l.near, ranks, m.first, values)
		case l.far != nil:
			parquetfile.Pick(col, row, l.far, ranks, m.first, values)
		default:
			col.Fill(row)
			col.Append(l.value, values, len(ranks))
		}
	}
}

// inSome reports whether one of some label sets, by their ranks, has the label. first is the rank
// of the metric's first one.
func (l *labelColumnOf) inSome(ranks []uint32, first uint32) bool {
	return l.all || slices.ContainsFunc(ranks, func(r uint32) bool {
		if l.near != nil {
			return l.near[r-first] > 0
		}
		return l.far[r-first] > 0
	})
}
