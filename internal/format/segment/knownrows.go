package segment

import (
	"slices"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/series"
)

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

// inSome reports whether one of some label sets, by their ranks, has the label. first is the rank of
// the metric's first one.
func (l *labelColumnOf) inSome(ranks []uint32, first uint32) bool {
	return l.all || slices.ContainsFunc(ranks, func(r uint32) bool {
		if l.near != nil {
			return l.near[r-first] > 0
		}
		return l.far[r-first] > 0
	})
}
