package explain

import (
	"fmt"
	"slices"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/plan/ordinals"
	"github.com/promlake/promlake/internal/segment"
)

// A row of a segment is identified by the position of its file in the statement and its own in the
// file.
const (
	rowBits = 40
	rowKey  = "(file_index * 1099511627776 + file_row_number::UBIGINT)"
)

// segments renders the read of segments: first those whose times are all wanted, then the others.
// paths are parallel to the objects.
func (t *scanText) segments(s *leafScan, paths []string) []string {
	var inside, across []segmentRows
	for _, g := range s.segments {
		if info := s.res.Objects[g.object].Footer; info.MinT >= s.mint && info.MaxT <= s.maxt {
			inside = append(inside, g)
		} else {
			across = append(across, g)
		}
	}
	var out []string
	if len(inside) > 0 {
		out = append(out, t.unnested(s, inside, paths, nil))
	}
	if len(across) > 0 {
		out = append(out, t.unnested(s, across, paths, []string{"ts >= " + timeLiteral(s.mint) + " AND ts <= " + timeLiteral(s.maxt)}))
	}
	return out
}

// unnested renders the samples of segments that satisfy conds.
func (t *scanText) unnested(s *leafScan, of []segmentRows, paths []string, conds []string) string {
	var files []string
	var keys []uint64
	var ranks []uint32
	var gone []goneRows
	for i := range of {
		files = append(files, paths[of[i].object])
		ranks = append(ranks, uint32(of[i].object))
		for _, row := range of[i].rows {
			keys = append(keys, uint64(i)<<rowBits|uint64(row))
		}
		for _, g := range of[i].gone {
			k := slices.IndexFunc(gone, func(h goneRows) bool { return h.mint == g.mint && h.maxt == g.maxt })
			if k < 0 {
				k = len(gone)
				gone = append(gone, goneRows{mint: g.mint, maxt: g.maxt})
			}
			for _, row := range g.keys {
				gone[k].keys = append(gone[k].keys, uint64(i)<<rowBits|row)
			}
		}
	}
	rank := "0::UBIGINT"
	if s.ranked {
		rank = "prom_at(file_index::UINTEGER, " + t.arg(ordinals.Array(ranks)) + ")::UBIGINT"
	}
	rows := []string{"prom_pick(" + rowKey + ", " + t.set(keys) + ") IS NOT NULL"}
	if in := s.metrics(); len(in) > 0 {
		rows = append(rows, duck.Ident(segment.ColMetric)+" IN ("+duck.Literals(in)+")")
	}
	conds = append(conds, t.alive("row_key", gone)...)
	if len(conds) == 0 {
		return "SELECT rank, series_id, unnest(ts) AS ts, unnest(value) AS value FROM (" + series(rank, "", files, rows) + ")"
	}
	key, more := "", ""
	if len(gone) > 0 {
		key, more = ", "+rowKey+" AS row_key", ", row_key"
	}
	return "SELECT rank, series_id, ts, value FROM (SELECT rank, series_id, unnest(ts) AS ts, unnest(value) AS value" + more +
		" FROM (" + series(rank, key, files, rows) + "))" + where(conds)
}

// series renders the rows of segments that satisfy conds.
func series(rank, key string, files, conds []string) string {
	return fmt.Sprintf("SELECT %s AS rank, series_id, ts, value%s FROM read_parquet([%s], hive_partitioning = false)%s", rank, key, duck.Literals(files), where(conds))
}

// maxMetrics is the number of metric names up to which a statement names them, so that DuckDB can
// skip row groups of segments.
const maxMetrics = 8

// metrics returns the metric names of the series, nil if there are more than maxMetrics.
func (s *leafScan) metrics() []string {
	var out []string
	for i := range s.res.Series {
		name := s.res.Series[i].Labels.Get(model.MetricNameLabel)
		if slices.Contains(out, name) {
			continue
		}
		if out = append(out, name); len(out) > maxMetrics {
			return nil
		}
	}
	return out
}
